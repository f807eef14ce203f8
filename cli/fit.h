// `penstock fit MODEL`: how much memory a model needs, and how many tokens and requests fit.
#pragma once

#include <cstdint>
#include <string>

#include "cli/memory_needs.h"
#include "cli/words.h"

namespace penstock::cli {

// The report, several lines.
std::string FitText(const std::string& model, const MemoryNeeds& needs);

// 0 if the model fits, 4 (common/exit_codes.h) if it does not.
int Fit(Words words);

}  // namespace penstock::cli
