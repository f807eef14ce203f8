#include "router/http/request_reader.h"

#include <algorithm>

#include "router/http/framing.h"
#include "router/http/text.h"

namespace penstock::router {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string ToString(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

RequestReader::State RequestReader::Fail(HttpFailure failure) {
  failure_ = std::move(failure);
  return State::kFailed;
}

void RequestReader::Reset() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
  parser_->body_limit(boost::none);
  chunks_ = chunk_bytes_ = extension_bytes_ = 0;
  chunk_fault_ = {};
  on_chunk_ = [this](std::uint64_t size, beast::string_view extensions, beast::error_code& ec) {
    CheckChunk(size, extensions.size(), ec);
  };
  parser_->on_chunk_header(on_chunk_);
  head_ = RequestHead{};
  failure_ = HttpFailure{};
  expects_continue_ = false;
  length_.reset();
}

// Called for each chunk header. Refuses bodies that cost more to frame than to carry.
void RequestReader::CheckChunk(std::uint64_t size, std::size_t extensions, beast::error_code& ec) {
  ++chunks_;
  chunk_bytes_ += size;
  extension_bytes_ += extensions;
  if (chunks_ > limits_.chunks) chunk_fault_ = "too many chunks";
  if (extension_bytes_ > limits_.chunk_extensions) chunk_fault_ = "too many chunk extensions";
  if (size != 0 && chunks_ > limits_.free_chunks &&
      chunk_bytes_ / chunks_ < limits_.average_chunk) {
    chunk_fault_ = "too many tiny chunks";
  }
  if (!chunk_fault_.empty()) ec = http::error::bad_chunk;
}

RequestReader::State RequestReader::ReadHead(std::string& in) {
  // Empty lines before a request are ignored (RFC 9112 section 2.2), also those that come in
  // pieces.
  std::size_t begin = 0;
  while (in.compare(begin, 2, "\r\n") == 0) begin += 2;
  in.erase(0, begin);
  if (in == "\r") return State::kNeedMore;
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (auto failure = CheckUnfinished(in, limits_)) return Fail(*std::move(failure));
    return State::kNeedMore;
  }
  const std::string_view text = std::string_view(in).substr(0, end + 4);
  if (auto failure = CheckFraming(text, limits_)) return Fail(*std::move(failure));
  const State state = ParseHead(text);
  if (state == State::kReady) in.erase(0, end + 4);
  return state;
}

RequestReader::State RequestReader::ParseHead(std::string_view text) {
  beast::error_code ec;
  parser_->eager(false);
  parser_->put(boost::asio::const_buffer(text.data(), text.size()), ec);
  if (ec || !parser_->is_header_done()) {
    return Fail({400, "the request head is malformed: " + (ec ? ec.message() : "incomplete")});
  }
  CopyHead();
  if (parser_->chunked()) parser_->body_limit(limits_.body_bytes);
  return State::kReady;
}

void RequestReader::CopyHead() {
  const auto& message = parser_->get();
  head_.method = ToString(message.method_string());
  head_.http10 = message.version() == 10;
  const std::string whole = ToString(message.target());
  std::string target(whole == "*" ? whole : PathOf(whole));
  const std::size_t question = target.find('?');
  if (question != std::string::npos) head_.query = target.substr(question + 1);
  target.resize(std::min(question, target.size()));
  head_.path = std::move(target);
  for (const auto& field : message) {
    head_.headers.push_back({ToLower(ToString(field.name_string())), ToString(field.value())});
  }
  if (const auto promised = parser_->content_length()) length_ = *promised;
  // Other expectations are ignored, as TGI ignores them.
  expects_continue_ = !head_.http10 && EqualsIgnoreCase(head_.Find("expect"), "100-continue");
}

bool RequestReader::BodyFits() {
  if (!length_ || *length_ <= limits_.body_bytes) return true;
  Fail({413, "the body must have at most " + std::to_string(limits_.body_bytes) +
                 " bytes. Given: " + std::to_string(*length_)});
  return false;
}

RequestReader::State RequestReader::ReadBody(std::string& in) {
  if (!BodyFits()) return State::kFailed;
  parser_->eager(true);
  std::size_t used = 0;
  while (!parser_->is_done() && used < in.size()) {
    beast::error_code ec;
    const std::size_t taken =
        parser_->put(boost::asio::const_buffer(in.data() + used, in.size() - used), ec);
    used += taken;
    if (ec == http::error::need_more) break;
    if (ec == http::error::body_limit) {
      return Fail(
          {413, "the body must have at most " + std::to_string(limits_.body_bytes) + " bytes"});
    }
    if (ec) {
      return Fail({400, "the chunked body is malformed: " +
                            (chunk_fault_.empty() ? ec.message() : std::string(chunk_fault_))});
    }
  }
  in.erase(0, used);
  if (parser_->is_done()) return State::kReady;
  // The bytes that the parser leaves are part of a chunk header or of the trailers.
  if (in.size() > limits_.head_bytes) {
    return Fail({400, "the chunked body is malformed: a chunk header is too long"});
  }
  return State::kNeedMore;
}

}  // namespace penstock::router
