// Grammars in llama.cpp's notation (GBNF, `root ::= "a" [0-9]+`) as Lark grammars of llguidance.
//
// llguidance reads an output as lexemes, the longest match first, and GBNF knows no lexemes. So
// each part of a rule that cannot recurse becomes one terminal, which matches exactly what the part
// does. Only at the border of two terminals of a recursive rule the longest match decides.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace penstock::router::openai {

// The Lark text, or why the source is wrong: a message that can follow "grammar is not valid: ".
struct GbnfError {
  std::string message;
};
std::variant<std::string, GbnfError> LarkOfGbnf(std::string_view source);

}  // namespace penstock::router::openai
