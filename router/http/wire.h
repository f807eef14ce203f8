// Bytes of an answer: status line, headers, chunks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "router/http/message.h"

namespace penstock::router {

// How a client finds the end of the body.
enum class BodyEnd { kLength, kChunked, kClose };

struct AnswerFrame {
  bool http10 = false;
  bool keep_alive = true;
  BodyEnd end = BodyEnd::kLength;
  std::string_view request_id = {};
};

// Status line and headers with the empty line; `response.body` gives the length only.
std::string WriteHead(const HttpResponse& response, const AnswerFrame& frame);

// One chunk of a chunked body. Empty data would be the last chunk: nothing is written then.
void AppendChunk(std::string& out, std::string_view data);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace penstock::router
