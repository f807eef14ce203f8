// Tokens of the served model that no text can mean.
#pragma once

#include <string>
#include <vector>

#include "common/ids.h"

namespace penstock::router::answer {

struct SpecialToken {
  std::string text;
  TokenId id = 0;
};

using SpecialTokens = std::vector<SpecialToken>;

}  // namespace penstock::router::answer
