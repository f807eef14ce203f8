// One HTTP request at a time to a server, with a body that may come in pieces.
#pragma once

#include <absl/status/statusor.h>

#include <boost/beast/http/verb.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "tools/bench/server_stream.h"

namespace penstock::cli {

struct HttpCall {
  boost::beast::http::verb method = boost::beast::http::verb::get;
  std::string target;  // below the path of the URL
  std::string body;    // JSON
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  bool stops_on_interrupt = false;  // SIGINT ends the call
  // Gets the body of an answer with status 200 as it comes. Empty: the answer keeps it.
  std::function<void(std::string_view)> on_bytes;
};

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
  bool interrupted = false;
};

class HttpClient {
 public:
  // `key`: sent as bearer token; may be empty.
  HttpClient(bench::ServerUrl url, std::string key, bench::TlsTrust trust);

  // An error: no answer came. Blocks.
  absl::StatusOr<HttpAnswer> Call(const HttpCall& call) const;

 private:
  const bench::ServerUrl url_;
  const std::string key_;
  const bench::TlsTrust trust_;
};

}  // namespace penstock::cli
