// What router/http counts: responses by route and status, and connections. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace prometheus {
class Registry;
}

namespace penstock::router {

class HttpMetrics {
 public:
  explicit HttpMetrics(prometheus::Registry& registry);
  ~HttpMetrics();

  void Response(std::string_view route, int status);
  void ConnectionOpened();
  void ConnectionClosed();
  void ConnectionRefused();  // over the connection limit
  void TlsHandshakeFailed();

 private:
  struct Families;
  std::unique_ptr<Families> own_;
};

}  // namespace penstock::router
