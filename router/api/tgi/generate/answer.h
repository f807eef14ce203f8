// Writes TGI's JSON and event stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "router/api/context.h"
#include "router/api/run.h"
#include "router/api/tgi/generate/request.h"

namespace penstock::router::tgi {

// What the answer needs of its request.
struct AnswerStyle {
  bool details = false;
  bool prefill = false;        // details.prefill is filled
  bool in_array = false;       // POST /
  std::string prefix;          // return_full_text: the prompt
  std::size_t characters = 0;  // of the prompt
  std::string compute_type;
  Time arrived;
};

std::unique_ptr<AnswerWriter> MakePlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                              std::size_t candidates);
std::unique_ptr<AnswerWriter> MakeStreamAnswer(std::shared_ptr<Exchange> exchange,
                                               AnswerStyle style);

// The head of every stream, and the headers of a plain answer: device, token counts, times.
HttpResponse StreamHead(const AnswerStyle& style);
std::vector<Header> AnswerHeaders(const AnswerStyle& style, const GenerationEnd& end);

// A stream that is nothing but an error: TGI answers 200 and one event.
void StreamError(Exchange& exchange, const AnswerStyle& style, const ApiError& error);

}  // namespace penstock::router::tgi
