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
  std::vector<GenerationRequest> candidates;  // of each prompt its n answers
  AnswerStyle style;
};

// `request_id` names answers that the body does not name.
std::variant<Lowered, ApiError> Lower(const ApiContext& context, Request request,
                                      const std::string& request_id);

// The form of the engine's errors about this request.
const ErrorFormat& ErrorsAbout(const Request& request);

}  // namespace penstock::router::sglang
