// The run: `clients` connections, each with one request at a time.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string_view>
#include <vector>

#include "tools/bench/awscurl/options.h"
#include "tools/bench/awscurl/result.h"

namespace penstock::bench::awscurl {

// Tokens (or words) of a text.
using Counter = std::function<std::size_t(std::string_view text)>;

absl::StatusOr<Result> Run(const Options& options, const Counter& count);

// `penstock-bench --preset awscurl …`: parses, runs, prints; the exit code.
int Main(const std::vector<std::string>& arguments);

}  // namespace penstock::bench::awscurl
