#include "router/http/request_reader.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <utility>

#include "router/http/framing.h"
#include "router/http/text.h"

namespace penstock::router {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Parser = http::request_parser<http::string_body>;

std::string ToString(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct RequestReader::Impl {
  // Runs for each chunk header; refuses bodies that cost more to frame than to carry.
  struct ChunkCheck {
    explicit ChunkCheck(const HttpLimits& l) : limits(l) {}
    void operator()(std::uint64_t size, beast::string_view extensions, beast::error_code& ec) {
      ++chunks;
      bytes += size;
      extension_bytes += extensions.size();
      if (chunks > limits.chunks) reason = "too many chunks";
      if (extension_bytes > limits.chunk_extensions) reason = "too many chunk extensions";
      if (size != 0 && chunks > limits.free_chunks && bytes / chunks < limits.average_chunk) {
        reason = "too many tiny chunks";
      }
      if (!reason.empty()) ec = http::error::bad_chunk;
    }
    const HttpLimits& limits;
    std::uint64_t chunks = 0;
    std::uint64_t bytes = 0;
    std::uint64_t extension_bytes = 0;
    std::string_view reason;  // set when it refuses
  };

  explicit Impl(const HttpLimits& l) : limits(l), check(l) {}

  State Fail(HttpFailure why) {
    failure = std::move(why);
    return State::kFailed;
  }

  State ParseHead(std::string_view text);
  void CopyHead();

  HttpLimits limits;
  std::optional<Parser> parser;
  ChunkCheck check;
  std::function<void(std::uint64_t, beast::string_view, beast::error_code&)> on_chunk;
  RequestHead head;
  HttpFailure failure;
  bool expects_continue = false;
  std::optional<std::uint64_t> length;
};

RequestReader::RequestReader(const HttpLimits& limits) : impl_(std::make_unique<Impl>(limits)) {
  Reset();
}

RequestReader::~RequestReader() = default;

void RequestReader::Reset() {
  Impl& impl = *impl_;
  impl.parser.emplace();
  impl.parser->header_limit(static_cast<std::uint32_t>(impl.limits.head_bytes));
  impl.parser->body_limit(boost::none);
  impl.check.chunks = impl.check.bytes = impl.check.extension_bytes = 0;
  impl.check.reason = {};
  impl.on_chunk = std::ref(impl.check);
  impl.parser->on_chunk_header(impl.on_chunk);
  impl.head = RequestHead{};
  impl.failure = HttpFailure{};
  impl.expects_continue = false;
  impl.length.reset();
}

RequestReader::State RequestReader::ReadHead(std::string& in) {
  Impl& impl = *impl_;
  // An empty line before a request is ignored (RFC 9112 section 2.2).
  if (in.starts_with("\r\n")) in.erase(0, 2);
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (auto failure = CheckUnfinished(in, impl.limits)) return impl.Fail(*std::move(failure));
    return State::kNeedMore;
  }
  const std::string_view text = std::string_view(in).substr(0, end + 4);
  if (auto failure = CheckFraming(text, impl.limits)) return impl.Fail(*std::move(failure));
  const State state = impl.ParseHead(text);
  if (state == State::kReady) in.erase(0, end + 4);
  return state;
}

RequestReader::State RequestReader::Impl::ParseHead(std::string_view text) {
  beast::error_code ec;
  parser->eager(false);
  parser->put(boost::asio::const_buffer(text.data(), text.size()), ec);
  if (ec || !parser->is_header_done()) {
    return Fail({400, "the request head is malformed: " + (ec ? ec.message() : "incomplete")});
  }
  CopyHead();
  if (parser->chunked()) parser->body_limit(limits.body_bytes);
  return State::kReady;
}

void RequestReader::Impl::CopyHead() {
  const auto& message = parser->get();
  head.method = ToString(message.method_string());
  head.http10 = message.version() == 10;
  const std::string whole = ToString(message.target());
  std::string target(whole == "*" ? whole : PathOf(whole));
  const std::size_t question = target.find('?');
  if (question != std::string::npos) head.query = target.substr(question + 1);
  target.resize(std::min(question, target.size()));
  head.path = std::move(target);
  for (const auto& field : message) {
    head.headers.push_back({ToLower(ToString(field.name_string())), ToString(field.value())});
  }
  if (const auto promised = parser->content_length()) length = *promised;
  // Other expectations are ignored, as TGI ignores them.
  expects_continue = !head.http10 && EqualsIgnoreCase(head.Find("expect"), "100-continue");
}

bool RequestReader::BodyFits() {
  Impl& impl = *impl_;
  if (!impl.length || *impl.length <= impl.limits.body_bytes) return true;
  impl.Fail({413, "the body must have at most " + std::to_string(impl.limits.body_bytes) +
                      " bytes. Given: " + std::to_string(*impl.length)});
  return false;
}

RequestReader::State RequestReader::ReadBody(std::string& in) {
  if (!BodyFits()) return State::kFailed;
  Impl& impl = *impl_;
  impl.parser->eager(true);
  std::size_t used = 0;
  while (!impl.parser->is_done() && used < in.size()) {
    beast::error_code ec;
    const std::size_t taken =
        impl.parser->put(boost::asio::const_buffer(in.data() + used, in.size() - used), ec);
    used += taken;
    if (ec == http::error::need_more) break;
    if (ec == http::error::body_limit) {
      return impl.Fail(
          {413, "the body must have at most " + std::to_string(impl.limits.body_bytes) + " bytes"});
    }
    if (ec) {
      const std::string_view reason = impl.check.reason;
      return impl.Fail({400, "the chunked body is malformed: " +
                                 (reason.empty() ? ec.message() : std::string(reason))});
    }
  }
  in.erase(0, used);
  if (impl.parser->is_done()) return State::kReady;
  // The bytes that the parser leaves are part of a chunk header or of the trailers.
  if (in.size() > impl.limits.head_bytes) {
    return impl.Fail({400, "the chunked body is malformed: a chunk header is too long"});
  }
  return State::kNeedMore;
}

std::string RequestReader::TakeBody() { return std::move(impl_->parser->get().body()); }

std::size_t RequestReader::body_received() const { return impl_->parser->get().body().size(); }

RequestHead& RequestReader::head() { return impl_->head; }

bool RequestReader::keep_alive() const { return impl_->parser->keep_alive(); }

bool RequestReader::expects_continue() const { return impl_->expects_continue; }

std::optional<std::uint64_t> RequestReader::content_length() const { return impl_->length; }

bool RequestReader::has_body() const { return !impl_->parser->is_done(); }

RequestReader::State RequestReader::Fail(HttpFailure failure) {
  return impl_->Fail(std::move(failure));
}

const HttpFailure& RequestReader::failure() const { return impl_->failure; }

}  // namespace penstock::router
