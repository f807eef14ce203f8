// One streamed answer of /v1/chat/completions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tools/bench/sse_reader.h"

namespace penstock::cli {

using ChatClock = std::chrono::steady_clock;

class ChatReply {
 public:
  // Gets each piece of text; `reasoning` says which kind it is.
  using OnText = std::function<void(std::string_view text, bool reasoning)>;

  ChatReply(ChatClock::time_point begin, OnText on_text)
      : begin_(begin), on_text_(std::move(on_text)) {}

  // Bytes of the stream as they come.
  void Feed(std::string_view bytes, ChatClock::time_point now);

  const std::string& text() const { return text_; }    // without the reasoning
  const std::string& error() const { return error_; }  // that the stream named
  bool done() const { return done_; }                  // the stream was complete

  // "12 tokens, 34.5 tokens/s, first after 0.12 s; prompt 40 tokens, 32 of them cached". An answer
  // that came at once has no rate.
  std::string Stats() const;

 private:
  void TakeEvent(std::string_view data, ChatClock::time_point now);

  const ChatClock::time_point begin_;
  const OnText on_text_;
  bench::SseReader reader_;
  std::string text_;
  std::string error_;
  bool done_ = false;
  ChatClock::time_point first_ = {};
  ChatClock::time_point last_ = {};
  std::uint64_t pieces_ = 0;
  std::uint64_t tokens_ = 0;  // by the usage; 0: it did not come
  std::uint64_t prompt_ = 0;
  std::uint64_t cached_ = 0;
};

// The message of an error body: OpenAI's envelope, or the text itself.
std::string ErrorMessage(const std::string& body);

}  // namespace penstock::cli
