// Writes the answer to one POST /v1/responses, plain or as a stream of events, and keeps it in the
// store.
#pragma once

#include <memory>
#include <string>

#include "router/answer/reader.h"
#include "router/api/responses/output.h"
#include "router/api/responses/response.h"
#include "router/api/responses/store.h"
#include "router/api/run.h"

namespace penstock::router::responses {

struct AnswerStyle {
  ResponseFacts facts;
  OutputStyle output;
  answer::ReadOptions read;
  bool logprobs = false;
  const ErrorFormat* errors = nullptr;  // not null
  std::shared_ptr<Store> store;         // null: it is not stored
  std::string tenant;
  std::shared_ptr<const std::string> input;  // with `store`: StoredResponse::input
};

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style);

}  // namespace penstock::router::responses
