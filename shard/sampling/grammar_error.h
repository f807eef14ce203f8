// How the error of a sequence begins whose grammar is none or costs too much: the client's matter.
#pragma once

#include <string_view>

namespace penstock::shard {

inline constexpr std::string_view kGrammarError = "grammar: ";

}  // namespace penstock::shard
