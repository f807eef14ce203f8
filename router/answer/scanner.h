// Finds reasoning and calls of tools in a generated text, whatever the pieces in which it comes.
//
// A call is decided at its header: its opening marker, the name of an offered tool, and the
// beginning of its arguments. Until then the text waits. What is no header is text. What breaks
// after the header stays a call with the arguments as the model wrote them. Blanks beside markers
// belong to them. Otherwise each byte of the text is in exactly one event, in its order.
//
//   Scanner scanner(format, {.tools = tools, .prompt_end = start.prompt_end});
//   scanner.Feed(token.delta, events) …; scanner.Feed(end.tail, events); scanner.Finish(events);
//
// A plain answer is the sum of the same events (Answer::Add), so it cannot differ from a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/answer/bodies/body.h"
#include "router/answer/events.h"
#include "router/answer/format.h"
#include "router/answer/marker_table.h"
#include "router/answer/tool_set.h"

namespace penstock::router::answer {

struct ScanOptions {
  std::shared_ptr<const ToolSet> tools = {};  // null or empty: no text is a call
  std::string_view prompt_end = {};           // tells whether the prompt opened the reasoning
};

// One per output; used by one thread at a time. `format` must outlive it.
class Scanner {
 public:
  Scanner(const Format& format, const ScanOptions& options);

  // A piece of the text, of any size.
  void Feed(std::string_view piece, std::vector<Event>& events);
  // No piece may follow.
  void Finish(std::vector<Event>& events);

  // What has been fed ends inside of reasoning.
  bool in_reasoning() const { return state_ == State::kReasoning; }

 private:
  enum class State : std::uint8_t { kText, kReasoning, kArguments, kTail, kBetweenCalls };
  enum class Found : std::uint8_t { kCall, kNone, kUndecided };

  // Each handles what it can of pending_ and returns whether the rest can be handled further.
  bool Step(std::vector<Event>& events);
  bool StepText(std::vector<Event>& events);
  bool StepArguments(std::vector<Event>& events);
  bool StepTail();
  bool StepBetweenCalls(std::vector<Event>& events);

  bool TakeMarker(const MarkerTable::Match& match);
  // Reads the header of a call at `position` of pending_.
  Found ReadHeader(std::size_t position, bool next, Header& header, std::size_t& size) const;
  void BeginCall(Header header, std::vector<Event>& events);
  void EndCall(std::vector<Event>& events);
  void EmitArguments(std::string json, std::vector<Event>& events) const;
  // Emits the first bytes of pending_ as text or reasoning, without the blanks at their end, which
  // wait.
  void Emit(std::size_t size, std::vector<Event>& events);
  void Drop(std::size_t size);
  bool AtLineBegin(std::size_t position) const;

  const Format* format_;
  std::shared_ptr<const ToolSet> tools_;
  MarkerTable text_markers_;
  MarkerTable reasoning_markers_;
  State state_ = State::kText;
  bool finished_ = false;
  bool begun_ = false;        // text or reasoning was emitted, or a call began
  bool skip_blanks_ = false;  // those after a marker
  char last_ = '\n';          // the character before pending_
  std::string pending_;       // not handled yet
  std::unique_ptr<Body> body_;
  std::size_t calls_ = 0;  // begun ones
};

}  // namespace penstock::router::answer
