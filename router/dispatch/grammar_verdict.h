// What a check of a grammar finds (grammar_checker.h).
#pragma once

#include <string>
#include <variant>

#include "common/plan/grammar.h"

namespace penstock::router {

struct GrammarRefusal {
  bool busy = false;    // nothing is known of the grammar: too many others are being checked
  std::string message;  // for the client
};
using GrammarVerdict = std::variant<GrammarSpec, GrammarRefusal>;

}  // namespace penstock::router
