// SGLang's generate as generation requests, with the limits of this server.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "router/api/context.h"
#include "router/api/errors.h"
#include "router/api/sglang/answer.h"
#include "router/api/sglang/request.h"

namespace penstock::router::sglang {

struct Lowered {
  std::vector<GenerationRequest> candidates;  // n for each prompt, ordered by prompt
  AnswerStyle style;
};

// Turns a body into one generation request for each answer. `request_id` is the id of an answer to
// which the body gives none.
std::variant<Lowered, ApiError> Lower(const ApiContext& context, Request request,
                                      const std::string& request_id);

// How errors about this request are written.
const ErrorFormat& ErrorsAbout(const Request& request);

}  // namespace penstock::router::sglang
