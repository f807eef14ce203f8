// Writes the answers of DJL's formatters: json, jsonlines and sse.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "router/api/context.h"
#include "router/api/djl/lower.h"
#include "router/api/run.h"

namespace penstock::router::djl {

// What the answer needs of its request.
struct AnswerStyle {
  Formatter formatter = Formatter::kJson;
  bool list = false;        // the inputs were one: the answers are, too
  bool tgi_compat = false;  // TGI's names, and an array of one
  bool details = false;
  bool prefill = false;
  bool full_text = false;
  std::vector<std::string> inputs;
};

AnswerStyle StyleOf(const DjlOptions& options, const Request& request, Formatter formatter);

// Whether this error fails one input of a list only. Then it takes the place of that input's
// answer. An error of something that all inputs share fails all of them.
bool FailsAlone(const AnswerStyle& style, const ApiError& error);

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style);

// --- Pieces that both kinds of answer share.

void AppendToken(std::string& out, const AnswerStyle& style, const TokenInfo& token);
// The elements of a list.
void AppendTokens(std::string& out, const AnswerStyle& style, const std::vector<TokenInfo>& tokens);
// "finish_reason":…,"generated_tokens":…,"inputs":…
void AppendDetails(std::string& out, const AnswerStyle& style, std::size_t index,
                   const GenerationEnd& end);
std::string FullText(const AnswerStyle& style, std::size_t index, const std::string& text);

std::unique_ptr<AnswerWriter> MakePlainAnswer(std::shared_ptr<Exchange> exchange,
                                              AnswerStyle style);
std::unique_ptr<AnswerWriter> MakeStreamAnswer(std::shared_ptr<Exchange> exchange,
                                               AnswerStyle style);

}  // namespace penstock::router::djl
