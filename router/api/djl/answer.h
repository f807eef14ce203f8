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

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style);

}  // namespace penstock::router::djl
