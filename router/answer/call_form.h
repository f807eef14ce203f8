// How a format writes calls, as text: what a grammar forces a model to write. The scanner of the
// format reads it back, and other spellings too.
#pragma once

#include <cstdint>
#include <string_view>

#include "router/answer/bodies/tagged_body.h"

namespace penstock::router::answer {

enum class ArgumentForm : std::uint8_t {
  kJson,    // a JSON object
  kTags,    // CallForm::tags
  kPython,  // name=value, …
  kObject,  // {name:value, …} with strings between CallForm::quote
};

// section_begin (call_begin NAME after_name ARGUMENTS call_end), … section_end
struct CallForm {
  std::string_view role = {};           // may stand before the first call, after reasoning
  std::string_view section_begin = {};  // before the first call
  std::string_view call_begin = {};
  bool numbered = false;  // a colon and the number of the call follow the name
  std::string_view after_name = {};
  ArgumentForm arguments = ArgumentForm::kJson;
  const ArgumentTags* tags = nullptr;
  bool lines = false;  // each value stands in lines of its own between its tags
  std::string_view quote = {};
  std::string_view call_end = {};
  std::string_view separator = {};  // between two calls
  std::string_view section_end = {};
  bool single = false;  // an answer has one call at most
};

}  // namespace penstock::router::answer
