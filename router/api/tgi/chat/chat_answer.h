// Chat completions and their chunks as TGI writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "router/api/run.h"
#include "router/api/tgi/generate/answer.h"

namespace penstock::router::tgi {

struct ChatStyle {
  AnswerStyle common;
  std::string model;
  std::string fingerprint;
  std::int64_t created = 0;
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

// An error of a stream of TGI's OpenAI routes: one event, then [DONE].
void AppendStreamFailure(std::string& out, const ApiError& error);
void FailStream(Exchange& exchange, const AnswerStyle& style, bool open, const ApiError& error);

}  // namespace penstock::router::tgi
