// One connection of a load generator to its server, plain or with TLS.
#pragma once

#include <absl/status/statusor.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::bench {

// Where the requests go.
struct ServerUrl {
  std::string host;
  std::uint16_t port = 80;
  std::string target;  // path and query; may be empty
  bool tls = false;

  std::string HostHeader() const;
  std::string Address() const;  // "http://127.0.0.1:3000"
};

// nullopt: it is no URL of http or https.
std::optional<ServerUrl> ParseServerUrl(const std::string& text);

// How the certificate of an https server is checked.
struct TlsTrust {
  std::string ca_file;    // PEM; empty: what the system trusts
  bool insecure = false;  // it is not checked
};

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// The context for all connections to the server; null for http. InvalidArgument: the file of
// certificates cannot be used.
absl::StatusOr<TlsContext> MakeTlsContext(const ServerUrl& url, const TlsTrust& trust);

// Used by one coroutine at a time.
class ServerStream {
 public:
  using ErrorCode = boost::system::error_code;
  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;

  // `tls` as MakeTlsContext gives it. `host` is the name in the server's certificate.
  ServerStream(boost::asio::io_context& io, TlsContext tls, std::string host)
      : io_(io), tls_(std::move(tls)), host_(std::move(host)) {}

  bool is_open() const { return stream_ != nullptr; }
  // Closes an open connection.
  boost::asio::awaitable<ErrorCode> Connect(boost::asio::ip::tcp::endpoint endpoint,
                                            std::chrono::milliseconds timeout);
  // Why the last Connect refused the server's certificate; empty: it did not.
  const std::string& certificate_error() const { return certificate_error_; }
  // The deadline of what follows.
  void ExpiresAfter(std::chrono::milliseconds timeout);
  boost::asio::awaitable<ErrorCode> Write(const Request& request);
  boost::asio::awaitable<ErrorCode> ReadHead(Parser& parser);
  boost::asio::awaitable<ErrorCode> ReadSome(Parser& parser);
  void Close() {
    secure_.reset();
    stream_.reset();
  }

 private:
  using TlsStream = boost::asio::ssl::stream<boost::beast::tcp_stream&>;

  boost::asio::io_context& io_;
  const TlsContext tls_;
  const std::string host_;
  std::string certificate_error_;
  std::unique_ptr<boost::beast::tcp_stream> stream_;
  std::unique_ptr<TlsStream> secure_;  // over stream_; null without TLS
  boost::beast::flat_buffer buffer_;
};

// The text of an error, with a hint if the certificate was refused.
std::string ErrorText(const boost::system::error_code& error);

}  // namespace penstock::bench
