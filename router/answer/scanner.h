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
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/answer/events.h"
#include "router/answer/format.h"
#include "router/answer/tool_set.h"

namespace penstock::router::answer {

class Body;

struct ScanOptions {
  std::shared_ptr<const ToolSet> tools = {};  // null: no text is a call
  bool split_reasoning = true;                // false: reasoning is text, without its markers
  std::string_view prompt_end = {};           // tells whether the prompt opened the reasoning
};

// One per output; used by one thread at a time. `format` must outlive it.
class Scanner {
 public:
  Scanner(const Format& format, const ScanOptions& options);
  ~Scanner();
  Scanner(Scanner&&) noexcept;
  Scanner& operator=(Scanner&&) noexcept;

  // `piece` is UTF-8, whole characters.
  void Feed(std::string_view piece, std::vector<Event>& events);
  // No piece may follow.
  void Finish(std::vector<Event>& events);

  bool in_reasoning() const { return state_ == State::kReasoning; }
  std::size_t calls() const { return calls_; }

 private:
  enum class State : std::uint8_t { kText, kReasoning, kArguments, kAfterArguments, kBetween };

  // Each handles the beginning of pending_ and returns whether it got further.
  bool Step();
  bool StepText();
  bool StepReasoning();
  bool StepArguments();
  bool StepAfterArguments();
  bool StepBetween();
  bool OpenAt(std::size_t position);
  bool TryCall(std::size_t blanks);
  void BeginCall(const Header& header);
  void Emit(std::string_view text);
  void EmitUpTo(std::size_t end);
  void TakeBlanks();

  const Format* format_;
  std::shared_ptr<const ToolSet> tools_;
  bool split_reasoning_;
  State state_ = State::kText;
  bool final_ = false;
  bool at_begin_ = true;  // no text has been emitted yet
  std::string pending_;   // not handled yet
  std::unique_ptr<Body> body_;
  std::size_t calls_ = 0;
  std::vector<Event>* events_ = nullptr;
};

}  // namespace penstock::router::answer
