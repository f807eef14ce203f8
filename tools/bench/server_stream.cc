#include "tools/bench/server_stream.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <tuple>
#include <utility>

namespace penstock::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

bool IsAddress(const std::string& host) {
  boost::system::error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

bool IsTls(const boost::system::error_code& error) {
  return error.category() == asio::error::get_ssl_category();
}

bool RefusesCertificate(const boost::system::error_code& error) {
  return IsTls(error) && ERR_GET_REASON(static_cast<unsigned long>(error.value())) ==
                             SSL_R_CERTIFICATE_VERIFY_FAILED;
}

}  // namespace

std::string ServerUrl::HostHeader() const {
  const bool ipv6 = host.find(':') != host.npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string ServerUrl::Address() const { return (tls ? "https://" : "http://") + HostHeader(); }

std::optional<ServerUrl> ParseServerUrl(const std::string& text) {
  const auto parsed = boost::urls::parse_uri(text);
  if (!parsed || parsed->host().empty()) return std::nullopt;
  ServerUrl url;
  url.tls = parsed->scheme() == "https";
  if (!url.tls && parsed->scheme() != "http") return std::nullopt;
  url.host = parsed->host_address();
  url.port = url.tls ? kHttpsPort : kHttpPort;
  if (parsed->has_port()) url.port = parsed->port_number();
  url.target = std::string(parsed->encoded_target());
  return url;
}

absl::StatusOr<TlsContext> MakeTlsContext(const ServerUrl& url, const TlsTrust& trust) {
  if (!url.tls) return nullptr;
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  boost::system::error_code error;
  if (trust.insecure) return context;
  context->set_verify_mode(asio::ssl::verify_peer);
  if (trust.ca_file.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->load_verify_file(trust.ca_file, error);
  }
  if (!error) return context;
  return absl::InvalidArgumentError("ca-file: " + trust.ca_file +
                                    " must be a PEM file of certificates: " + error.message());
}

asio::awaitable<ServerStream::ErrorCode> ServerStream::Connect(tcp::endpoint endpoint,
                                                               std::chrono::milliseconds timeout) {
  Close();
  stream_ = std::make_unique<beast::tcp_stream>(io_);
  buffer_.clear();
  certificate_error_.clear();
  ExpiresAfter(timeout);
  auto [error] = co_await stream_->async_connect(endpoint, kAsTuple);
  if (!error) stream_->socket().set_option(tcp::no_delay(true), error);
  if (!error && tls_ != nullptr) {
    secure_ = std::make_unique<TlsStream>(*stream_, *tls_);
    secure_->set_verify_callback(asio::ssl::host_name_verification(host_), error);
    if (!IsAddress(host_)) SSL_set_tlsext_host_name(secure_->native_handle(), host_.c_str());
    std::tie(error) = co_await secure_->async_handshake(asio::ssl::stream_base::client, kAsTuple);
    if (RefusesCertificate(error)) {
      const long result = ::SSL_get_verify_result(secure_->native_handle());
      // OpenSSL records no cause if only the check of the host's name fails.
      certificate_error_ = result == X509_V_ERR_UNSPECIFIED
                               ? "it names another host"
                               : ::X509_verify_cert_error_string(result);
    }
  }
  if (error) Close();
  co_return error;
}

void ServerStream::ExpiresAfter(std::chrono::milliseconds timeout) {
  stream_->expires_after(timeout);
}

asio::awaitable<ServerStream::ErrorCode> ServerStream::Write(const Request& request) {
  ErrorCode error;
  if (secure_ != nullptr) {
    std::tie(error, std::ignore) = co_await http::async_write(*secure_, request, kAsTuple);
  } else {
    std::tie(error, std::ignore) = co_await http::async_write(*stream_, request, kAsTuple);
  }
  co_return error;
}

asio::awaitable<ServerStream::ErrorCode> ServerStream::ReadHead(Parser& parser) {
  ErrorCode error;
  if (secure_ != nullptr) {
    std::tie(error, std::ignore) =
        co_await http::async_read_header(*secure_, buffer_, parser, kAsTuple);
  } else {
    std::tie(error, std::ignore) =
        co_await http::async_read_header(*stream_, buffer_, parser, kAsTuple);
  }
  co_return error;
}

asio::awaitable<ServerStream::ErrorCode> ServerStream::ReadSome(Parser& parser) {
  ErrorCode error;
  if (secure_ != nullptr) {
    std::tie(error, std::ignore) =
        co_await http::async_read_some(*secure_, buffer_, parser, kAsTuple);
  } else {
    std::tie(error, std::ignore) =
        co_await http::async_read_some(*stream_, buffer_, parser, kAsTuple);
  }
  co_return error;
}

std::string ErrorText(const boost::system::error_code& error) {
  const char* advice = "";
  if (RefusesCertificate(error)) {
    advice = "; --ca-file names the certificates to trust";
  } else if (IsTls(error)) {
    advice = "; a server without TLS has an address that begins with http://";
  }
  return error.message() + advice;
}

}  // namespace penstock::bench
