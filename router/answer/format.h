// A format is how a family of models writes reasoning and calls of tools. Each is a table in
// formats/NAME.cc and a line in formats/formats.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "router/answer/tool_set.h"

namespace penstock::router::answer {

class Body;
class Cursor;

// A call whose header was read.
struct Header {
  const Tool* tool = nullptr;
  // Reads the arguments, which follow the header. Null if the header holds them.
  std::unique_ptr<Body> body;
  std::string arguments;  // what the header holds of them
};

// Markers around reasoning. Empty `open`: the format has none.
struct ReasoningMarkers {
  std::string_view open;
  std::string_view close;
};

// How the ids of calls look, since some templates check them when a call is sent back.
enum class CallIds : std::uint8_t {
  kLong,      // call_ and 24 letters
  kNine,      // nine letters or digits (Mistral)
  kNumbered,  // functions.NAME:NUMBER (Kimi)
};

struct Format {
  std::string_view name;
  std::string_view models;  // for help: "Qwen 2.5 and 3, Hermes, …"

  // The template of the format holds all strings of one of these.
  std::span<const std::span<const std::string_view>> evidence;

  std::span<const ReasoningMarkers> reasoning;

  // A call may begin with one of these in the text, or at the beginning of a line if the opener is
  // in line_openers.
  std::span<const std::string_view> openers;
  std::span<const std::string_view> line_openers;
  // Reads a header that begins with an opener, or with the next call of the same section.
  bool (*header)(Cursor& cursor, const ToolSet& tools, Header& header) = nullptr;
  // The same for a call after another one; null: `header`.
  bool (*next_header)(Cursor& cursor, const ToolSet& tools, Header& header) = nullptr;
  // Reads what follows the arguments of a call and belongs to it. Null: nothing.
  bool (*tail)(Cursor& cursor) = nullptr;
  // Markers that may stand between and after calls.
  std::span<const std::string_view> closers;
  // Markers that are dropped from the text, such as headers of a channel that the user sees.
  std::span<const std::string_view> dropped;

  // Special tokens that the text must keep.
  std::span<const std::string_view> special;

  CallIds call_ids = CallIds::kLong;
};

// In the order in which templates are compared.
std::span<const Format* const> Formats();

// Null if there is none of this name. "none" is a format: all is text.
const Format* FindFormat(std::string_view name);
const Format& NoFormat();

// The format that a chat template writes; NoFormat() if it shows none.
const Format& DetectFormat(std::string_view chat_template);

// The id of a call. `answer` is unique, the request's id for example. `number` counts all calls of
// the conversation.
std::string MakeCallId(const Format& format, std::string_view answer, std::string_view tool,
                       std::size_t number);

}  // namespace penstock::router::answer
