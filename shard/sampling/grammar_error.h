// The prefix of errors that the client's grammar causes: it is not valid or too expensive.
#pragma once

#include <string_view>

namespace penstock::shard {

inline constexpr std::string_view kGrammarError = "grammar: ";

}  // namespace penstock::shard
