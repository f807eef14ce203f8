#include "cli/http_client.h"

#include <signal.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "common/status.h"
#include "common/version.h"

namespace penstock::cli {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using bench::ServerStream;

// Used for one call.
class Exchange {
 public:
  Exchange(const HttpCall& call, bench::TlsContext tls, const std::string& host)
      : call_(call), stream_(io_, std::move(tls), host), signals_(io_) {}

  absl::StatusOr<HttpAnswer> Run(const bench::ServerUrl& url, ServerStream::Request request) {
    boost::system::error_code error;
    asio::ip::tcp::resolver resolver(io_);
    const auto found = resolver.resolve(url.host, std::to_string(url.port), error);
    if (error || found.empty()) return absl::UnavailableError(url.host + ": " + error.message());
    if (call_.stops_on_interrupt) {
      signals_.add(SIGINT, error);
      signals_.async_wait([this](const boost::system::error_code& failed, int) {
        if (failed) return;
        answer_.interrupted = true;
        io_.stop();
      });
    }
    asio::co_spawn(io_, Talk(found.begin()->endpoint(), std::move(request)), asio::detached);
    io_.run();
    if (error_) {
      const std::string& why = stream_.certificate_error();
      return absl::UnavailableError(
          (why.empty() ? "" : "the certificate is refused, " + why + ": ") +
          bench::ErrorText(error_));
    }
    return std::move(answer_);
  }

 private:
  asio::awaitable<void> Talk(asio::ip::tcp::endpoint endpoint, ServerStream::Request request) {
    error_ = co_await stream_.Connect(endpoint, call_.timeout);
    if (!error_) error_ = co_await stream_.Write(request);
    ServerStream::Parser parser;
    parser.body_limit(boost::none);
    if (!error_) error_ = co_await stream_.ReadHead(parser);
    if (!error_) answer_.status = parser.get().result_int();
    while (!error_ && !parser.is_done()) {
      stream_.ExpiresAfter(call_.timeout);
      error_ = co_await stream_.ReadSome(parser);
      Take(parser.get().body());
    }
    if (!error_) Take(parser.get().body());
    if (error_ == http::error::end_of_stream && answer_.status != 0) error_ = {};
    signals_.cancel();
  }

  void Take(std::string& bytes) {
    if (call_.on_bytes && answer_.status == 200) {
      if (!bytes.empty()) call_.on_bytes(bytes);
    } else {
      answer_.body += bytes;
    }
    bytes.clear();
  }

  const HttpCall& call_;
  asio::io_context io_;
  ServerStream stream_;
  asio::signal_set signals_;
  boost::system::error_code error_;
  HttpAnswer answer_;
};

}  // namespace

HttpClient::HttpClient(bench::ServerUrl url, std::string key, bench::TlsTrust trust)
    : url_(std::move(url)), key_(std::move(key)), trust_(std::move(trust)) {}

absl::StatusOr<HttpAnswer> HttpClient::Call(const HttpCall& call) const {
  PENSTOCK_ASSIGN_OR_RETURN(const bench::TlsContext tls, bench::MakeTlsContext(url_, trust_));
  std::string path = url_.target;
  while (path.ends_with('/')) path.pop_back();
  ServerStream::Request request(call.method, path + call.target, 11);
  request.set(http::field::host, url_.HostHeader());
  request.set(http::field::user_agent, "penstock/" + std::string(Version()));
  if (!key_.empty()) request.set(http::field::authorization, "Bearer " + key_);
  if (!call.body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = call.body;
  request.prepare_payload();
  return Exchange(call, tls, url_.host).Run(url_, std::move(request));
}

}  // namespace penstock::cli
