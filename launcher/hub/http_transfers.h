// Concurrent HTTP(S) requests on one thread with libcurl: TLS, proxies, keep-alive, redirects.
//
// Start requests, then call Run, which returns when all have ended. `done` of a request may start
// further requests. The token is sent only to the host that the request names, never to the target
// of a redirect.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::hub {

struct HttpResponse {
  absl::Status status;  // of the transfer; OK says nothing of the code
  long code = 0;
  std::map<std::string, std::string, std::less<>> headers;  // of the last answer; lower-case names
  std::string
      refused;  // why its receiver cannot use the body, where `status` and `code` do not say
  std::string Header(std::string_view name) const;  // empty when it has none
};

struct HttpRequest {
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  // inclusive
  };
  std::string url;
  std::string token;
  bool head_only = false;  // HEAD, and redirects are not followed
  std::optional<Range> range;
  // Gets the parts of the body as they arrive. Returns false to end the transfer with an error.
  std::function<bool(long code, std::string_view bytes)> body;
  std::function<void(HttpResponse)> done;
};

// Whether it has the form http(s)://host, with a path or without.
bool IsHttpUrl(const std::string& text);

class HttpTransfers {
 public:
  HttpTransfers();
  ~HttpTransfers();
  HttpTransfers(const HttpTransfers&) = delete;
  HttpTransfers& operator=(const HttpTransfers&) = delete;

  // At once, or after a while.
  void Start(HttpRequest request, std::chrono::milliseconds delay = std::chrono::milliseconds(0));

  // Returns when nothing is left to do, or with the first error of `Stop`.
  absl::Status Run();
  // Ends Run, from a callback.
  void Stop(absl::Status why);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::hub
