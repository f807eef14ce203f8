// What a generated text says: text for the user, reasoning, and calls of tools.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace penstock::router::answer {

struct TextDelta {
  std::string text;
};

struct ReasoningDelta {
  std::string text;
};

// The name is one of the request's tools. Indexes count from 0 and are never used twice.
struct CallBegin {
  std::size_t index = 0;
  std::string name;
};

// More of the call's arguments, a JSON object as text. They are not checked: an output that was cut
// or is wrong gives text that is no JSON.
struct ArgumentsDelta {
  std::size_t index = 0;
  std::string json;
};

struct CallEnd {
  std::size_t index = 0;
};

// Calls do not overlap: between CallBegin and CallEnd there are only the call's arguments.
using Event = std::variant<TextDelta, ReasoningDelta, CallBegin, ArgumentsDelta, CallEnd>;

struct Call {
  std::string name;
  std::string arguments;  // JSON text, as ArgumentsDelta

  friend bool operator==(const Call&, const Call&) = default;
};

// A whole answer.
struct Answer {
  std::string text;
  std::string reasoning;
  std::vector<Call> calls;

  void Add(const Event& event);

  friend bool operator==(const Answer&, const Answer&) = default;
};

}  // namespace penstock::router::answer
