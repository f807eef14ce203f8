// The access log: one record for each answered request.
#pragma once

#include <cstddef>
#include <string_view>

#include "router/http/application.h"
#include "router/http/message.h"

namespace penstock::router {

// "12.3": milliseconds for people.
std::string MillisecondsText(Duration duration);

struct AnswerRecord {
  const RequestHead& head;
  std::string_view peer;
  std::string_view route;
  int status = 0;
  std::size_t sent = 0;  // bytes
  const RequestEnd& end;
  bool encrypted = false;
};

void LogAnswer(const AnswerRecord& answer);

}  // namespace penstock::router
