// Writes OpenAI's objects and chunks, for chats and for plain completions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  std::size_t choices_per_prompt = 1;   // generated
  std::size_t returned_per_prompt = 1;  // the best of them, by their mean log-probability
  bool logprobs = false;
  std::size_t top_logprobs = 0;                // of an echoed prompt
  std::optional<std::size_t> prompt_logprobs;  // vLLM's list, with so many alternatives
  bool echo = false;                           // each text begins with its prompt
  bool prompt_only = false;                    // max_tokens 0: nothing is generated
  std::vector<std::string> prompts;  // the texts to echo; empty where it was given as tokens
  bool include_usage = false;
  const answer::Format* format = &answer::NoFormat();
  answer::ReadOptions read = {};
  bool named_tool = false;  // the choice of a tool by name: its call ends with stop, as OpenAI's
  std::size_t earlier_calls = 0;  // in the messages

  bool ShowsPrompt() const { return echo || prompt_logprobs.has_value(); }
};

AnswerStyle MakeStyle(const ApiContext& context, bool chat, const std::string& request_id);

// In a stream an error before the first event is answered with its own status. A later error ends
// the stream with one event that has an `error` object, without [DONE].
std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream);

}  // namespace penstock::router::openai
