// Turns TGI's grammars, an object with "type" and "value", into what a shard enforces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/engine.h"
#include "router/json/value.h"

namespace penstock::router::tgi {

struct GrammarChoice {
  enum class Type : std::uint8_t { kJson, kRegex };
  Type type = Type::kJson;
  json::Value schema;    // kJson
  bool wrapped = false;  // it came as a json_schema's `schema`
  std::string regex;     // kRegex
};

bool ReadValue(json::Reader& reader, GrammarChoice& out, std::string_view expected);

// A JSON schema becomes a regular expression, as in TGI's router, with TGI's error texts.
Grammar LowerGrammar(const GrammarChoice& choice);

// For a server without grammars. Like other errors of grammars this one comes after those of the
// prompt's length.
Grammar UnsupportedGrammar();

}  // namespace penstock::router::tgi
