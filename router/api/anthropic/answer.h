// Writes Anthropic's messages, plain and as events.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "router/answer/reader.h"
#include "router/api/run.h"

namespace penstock::router::anthropic {

struct AnswerStyle {
  std::string id;          // "msg_…"
  std::string model;       // as served
  std::string request_id;  // of errors in a stream
  const answer::Format* format = &answer::NoFormat();
  answer::ReadOptions read = {};
  std::size_t earlier_calls = 0;  // in the messages
  bool thinking = false;          // reasoning is shown; else it is dropped
};

// In a stream an error before the first event is answered with its own status. A later one is the
// last event.
std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream);

}  // namespace penstock::router::anthropic
