// Reads an answer token by token, as dialects get it from the engine: a scanner that also counts
// the tokens of the reasoning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "router/answer/scanner.h"

namespace penstock::router::answer {

struct ReadOptions {
  std::shared_ptr<const ToolSet> tools = {};  // null: no text is a call
  bool parallel_calls = true;                 // false: calls after the first are dropped
};

// One per output; used by one thread at a time. `format` must outlive it.
class Reader {
 public:
  Reader(const Format& format, ReadOptions options);

  // Before the first token. `prompt_end`: GenerationStart::prompt_end.
  void Start(std::string_view prompt_end);
  // The delta of the next token. The events are valid until the next call.
  const std::vector<Event>& Token(std::string_view delta);
  // The tail of the text, once.
  const std::vector<Event>& End(std::string_view tail);

  std::uint32_t reasoning_tokens() const { return reasoning_tokens_; }
  std::size_t calls() const { return calls_; }

 private:
  void Feed(std::string_view text);
  // Drops the calls that are too many, and counts the others.
  void Check();

  const Format& format_;
  const ReadOptions options_;
  Scanner scanner_;
  std::vector<Event> events_;
  std::uint32_t waiting_tokens_ = 0;  // whose text has not come yet
  std::uint32_t reasoning_tokens_ = 0;
  std::size_t calls_ = 0;
};

}  // namespace penstock::router::answer
