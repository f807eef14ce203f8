// Chat and text completions and their chunks as TGI writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "router/api/run.h"
#include "router/api/tgi/generate/answer.h"

namespace penstock::router::tgi {

// What the answers of TGI's OpenAI routes need.
struct OpenAiStyle {
  OpenAiStyle(const ApiContext& context, std::string name);

  AnswerStyle common;
  std::string model;
  std::string fingerprint;
  std::int64_t created;
};

struct ChatStyle : OpenAiStyle {
  using OpenAiStyle::OpenAiStyle;

  bool logprobs = false;
  bool include_usage = false;
  bool uses_tools = false;
  std::string call_id;       // of a streamed call
  bool stream_open = false;  // this answer goes on in a stream that has begun
  // The model chose no tool: generates again without tools, and answers.
  std::function<void(bool stream_open)> again;
};

std::unique_ptr<AnswerWriter> MakeChatAnswer(std::shared_ptr<Exchange> exchange, ChatStyle style);
std::unique_ptr<AnswerWriter> MakeChatStream(std::shared_ptr<Exchange> exchange, ChatStyle style);

// {"object":…,"id":"","created":…,"model":…,"system_fingerprint":…,"choices":[
std::string ChunkPrefix(const OpenAiStyle& style, std::string_view object);

// An error of a stream of TGI's OpenAI routes: one event (`times`: for each prompt), then [DONE].
void AppendStreamFailure(std::string& out, const ApiError& error);
void FailStream(Exchange& exchange, const AnswerStyle& style, bool open, const ApiError& error,
                std::size_t times = 1);

// --- Text completions

std::unique_ptr<AnswerWriter> MakeCompletionAnswer(std::shared_ptr<Exchange> exchange,
                                                   OpenAiStyle style, std::size_t prompts);
// The prompts take turns: one event each, in their order, until they have ended.
std::unique_ptr<AnswerWriter> MakeCompletionStream(std::shared_ptr<Exchange> exchange,
                                                   OpenAiStyle style, std::size_t prompts);

}  // namespace penstock::router::tgi
