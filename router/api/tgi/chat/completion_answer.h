// Text completions and their chunks as TGI writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "router/api/run.h"
#include "router/api/tgi/generate/answer.h"

namespace penstock::router::tgi {

struct CompletionStyle {
  AnswerStyle common;
  std::string model;
  std::string fingerprint;
  std::int64_t created = 0;
};

std::unique_ptr<AnswerWriter> MakeCompletionAnswer(std::shared_ptr<Exchange> exchange,
                                                   CompletionStyle style, std::size_t prompts);
// The prompts take turns: one event each, in their order, until they have ended.
std::unique_ptr<AnswerWriter> MakeCompletionStream(std::shared_ptr<Exchange> exchange,
                                                   CompletionStyle style, std::size_t prompts);

// The same error for every prompt.
void FailCompletionStream(Exchange& exchange, const CompletionStyle& style, std::size_t prompts,
                          const ApiError& error);

}  // namespace penstock::router::tgi
