// Writes OpenAI's objects and chunks, for chats and for plain completions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "router/answer/reader.h"
#include "router/api/context.h"
#include "router/api/run.h"

namespace penstock::router::openai {

struct AnswerStyle {
  bool chat = true;
  std::string id;     // "chatcmpl-…" or "cmpl-…"
  std::string model;  // as served
  std::int64_t created = 0;
  std::string fingerprint;
  std::size_t choices = 1;
  std::size_t choices_per_prompt = 1;
  bool logprobs = false;
  bool include_usage = false;
  const answer::Format* format = &answer::NoFormat();
  answer::ReadOptions read = {};
  bool named_tool = false;  // the choice of a tool by name: its call ends with stop, as OpenAI's
  std::size_t earlier_calls = 0;  // in the messages
};

AnswerStyle MakeStyle(const ApiContext& context, bool chat, const std::string& request_id);

// In a stream an error before the first event is answered with its own status. A later error ends
// the stream with one event that has an `error` object, without [DONE].
std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream);

}  // namespace penstock::router::openai
