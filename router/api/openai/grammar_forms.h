// The forms in which a body gives a grammar. `field` is the key that holds it, for errors.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "router/api/errors.h"
#include "router/api/openai/request.h"
#include "router/engine.h"

namespace penstock::router::openai {

using GrammarOrError = std::variant<Grammar, ApiError>;

// A JSON schema, or a string that holds one.
GrammarOrError SchemaGrammar(std::string_view field, std::string_view json);
// A string with a regular expression.
GrammarOrError RegexGrammar(std::string_view field, std::string_view json);
// An array of strings, of which the output is one.
GrammarOrError ChoiceGrammar(std::string_view field, std::string_view json);
// A string with a grammar: GBNF if it has a `::=`, else Lark.
GrammarOrError TextGrammar(std::string_view field, std::string_view json);
GrammarOrError TagGrammar(std::string_view field, const StructuralTag& tag);
// An object, or a string that holds one.
GrammarOrError TagGrammar(std::string_view field, std::string_view json);

}  // namespace penstock::router::openai
