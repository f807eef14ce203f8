// Requests and tokens of named API keys. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace prometheus {
class Registry;
}

namespace penstock::router {

class TenantMetrics {
 public:
  explicit TenantMetrics(prometheus::Registry& registry);
  ~TenantMetrics();

  // Beyond this many names all others are counted as "other".
  static constexpr std::size_t kMaxTenants = 100;
  void Request(std::string_view tenant);
  void Tokens(std::string_view tenant, std::uint64_t prompt, std::uint64_t generated);

 private:
  struct Families;
  std::unique_ptr<Families> own_;
};

}  // namespace penstock::router
