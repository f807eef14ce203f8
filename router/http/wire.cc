#include "router/http/wire.h"

#include <array>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <ctime>

namespace penstock::router {
namespace {

// The Date header's value, made once per second and thread.
std::string_view HttpDate() {
  thread_local std::time_t made_for = -1;
  thread_local std::array<char, 32> text{};
  thread_local std::size_t size = 0;
  const std::time_t now = std::time(nullptr);
  if (now != made_for) {
    std::tm utc{};
    gmtime_r(&now, &utc);
    size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
    made_for = now;
  }
  return {text.data(), size};
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string WriteHead(const HttpResponse& response, const AnswerFrame& frame) {
  std::string out = "HTTP/1.1 ";
  out.reserve(512);
  const auto status = boost::beast::http::int_to_status(static_cast<unsigned>(response.status));
  out.append(std::to_string(response.status)).append(" ");
  out.append(boost::beast::http::obsolete_reason(status));
  out.append("\r\n");
  if (!response.content_type.empty()) AppendField(out, "content-type", response.content_type);
  for (const Header& header : response.headers) AppendField(out, header.name, header.value);
  AppendField(out, "date", HttpDate());
  if (!frame.request_id.empty()) AppendField(out, "x-request-id", frame.request_id);
  if (frame.end == BodyEnd::kLength) {
    AppendField(out, "content-length", std::to_string(response.body.size()));
  } else if (frame.end == BodyEnd::kChunked) {
    AppendField(out, "transfer-encoding", "chunked");
  }
  if (!frame.keep_alive || frame.end == BodyEnd::kClose) {
    AppendField(out, "connection", "close");
  } else if (frame.http10) {
    AppendField(out, "connection", "keep-alive");
  }
  out.append("\r\n");
  return out;
}

void AppendChunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), data.size(), 16).ptr;
  out.append(size.data(), end).append("\r\n").append(data).append("\r\n");
}

}  // namespace penstock::router
