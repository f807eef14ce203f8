// A format is how a family of models writes reasoning and calls of tools. Each is a table in the
// folder formats and a line of Formats().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/answer/bodies/body.h"
#include "router/answer/call_form.h"
#include "router/answer/cursor.h"
#include "router/answer/tool_set.h"

namespace penstock::router::answer {

using Texts = std::span<const std::string_view>;

// A call whose header was read.
struct Header {
  const Tool* tool = nullptr;
  std::unique_ptr<Body> body;  // reads the arguments, which are next; null: the header held them
  std::string arguments;       // what the header held of them
};

// Reads the header of a call.
using HeaderReader = bool (*)(Cursor& cursor, const ToolSet& tools, Header& header);

struct ReasoningMarkers {
  std::string_view open;
  std::string_view close;
  bool anywhere = false;  // false: at the beginning of an answer only; later it is text
};

// How the ids of calls look, since some templates check them when a call is sent back.
enum class CallIds : std::uint8_t {
  kLong,      // call_ and 24 letters
  kNine,      // nine letters or digits (Mistral)
  kNumbered,  // functions.NAME:NUMBER (Kimi)
};

struct Format {
  std::string_view name;
  std::string_view models;  // for help: "Qwen 2.5 and 3, Hermes"

  // A template writes this format if it holds all strings of one of these.
  std::span<const Texts> evidence;

  std::span<const ReasoningMarkers> reasoning;
  std::string_view answer_marker = {};  // the text of an answer always begins after this marker

  Texts openers;       // a call may begin with one of these, anywhere in the text
  Texts line_openers;  // the same at the beginning of a line; "" is any
  HeaderReader header = nullptr;
  HeaderReader next_header = nullptr;      // of a call right after another one, without an opener
  bool (*tail)(Cursor& cursor) = nullptr;  // reads what belongs to a call after its arguments
  Texts closers;                           // may stand between and after calls
  Texts dropped;                           // markers of the text that mean nothing to the user
  Texts special;                           // further markers that may be special tokens
  bool calls_end_reasoning = false;        // a call in reasoning ends it

  CallForm call = {};  // what a grammar forces

  CallIds call_ids = CallIds::kLong;
  bool text_arguments = false;  // its templates want arguments as text, not as objects
};

// In the order in which templates are compared.
std::span<const Format* const> Formats();

// Null if there is none of this name. The format "none" takes all as text.
const Format* FindFormat(std::string_view name);
const Format& NoFormat();

// The format that a chat template writes; NoFormat() if it shows none.
const Format& DetectFormat(std::string_view chat_template);

// All markers of a format. The generated text must keep special tokens that are in one of them.
std::vector<std::string> MarkersOf(const Format& format);

// The id of a call. `answer` is unique, the request's id for example. `number` counts the calls of
// the conversation.
std::string MakeCallId(const Format& format, std::string_view answer, std::string_view tool,
                       std::size_t number);

}  // namespace penstock::router::answer
