#include "router/http/wire.h"

#include <array>
#include <charconv>
#include <ctime>

namespace penstock::router {
namespace {

struct Phrase {
  int status;
  std::string_view text;
};
constexpr Phrase kPhrases[] = {
    {200, "OK"},
    {204, "No Content"},
    {303, "See Other"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {422, "Unprocessable Content"},
    {424, "Failed Dependency"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

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

std::string_view ReasonPhrase(int status) {
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return "Unknown";
}

std::string WriteHead(const HttpResponse& response, const AnswerFrame& frame) {
  std::string out = "HTTP/1.1 ";
  out.reserve(512);
  out.append(std::to_string(response.status)).append(" ").append(ReasonPhrase(response.status));
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
