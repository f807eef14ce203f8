// What a tenant may do. Values; set by the file of tenants (tenant_file.h).
#pragma once

#include <cstdint>
#include <optional>

namespace penstock::router {

struct TenantLimits {
  static constexpr std::uint32_t kMaxWeight = 1000;

  std::uint32_t weight = 1;                  // its part of the work, while others want more
  std::uint32_t max_requests = 0;            // generations at once, waiting ones too; 0: no limit
  std::uint64_t tokens_per_minute = 0;       // prompt and output; 0: no limit
  double queue_share = 1;                    // most of --max-concurrent-requests
  std::optional<std::int32_t> max_priority;  // of X-Penstock-Priority

  friend bool operator==(const TenantLimits&, const TenantLimits&) = default;
};

}  // namespace penstock::router
