// The open generations of each tenant and its tokens of the last minute. Refuses a request above
// the limits of its tenant.
//
// tokens_per_minute is a token bucket with the size of one minute. A request is accepted while the
// bucket is not empty. Its prompt tokens are subtracted when it starts, its output tokens when it
// ends. So the level may fall below zero, and requests are refused until it is above zero again.
//
// Thread-safe. An entry for each tenant that had a request.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time.h"
#include "router/api/errors.h"
#include "router/api/permits.h"
#include "router/api/tenant_limits.h"

namespace penstock::router {

class TenantGate {
 public:
  // `most`: --max-concurrent-requests.
  explicit TenantGate(std::uint32_t most) : most_(most) {}

  // Counts `generations` more for the tenant until the permit is returned, or says why not.
  std::optional<ApiError> Enter(const std::string& tenant, const TenantLimits& limits,
                                std::uint32_t generations, Time now, Permit& permit);
  // Tokens of the tenant were computed. No effect for a tenant that never entered.
  void Spend(const std::string& tenant, std::uint64_t tokens, Time now);

  // How many generations of the tenant wait for a place, with `more` new ones, if `running` run in
  // all: those beyond its part of the places by the weights of the tenants with open generations.
  // `part` is that part, at least one place.
  struct Waits {
    double waiting = 0;
    double part = 1;
  };
  Waits WaitsOf(const std::string& tenant, const TenantLimits& limits, std::uint32_t more,
                std::uint64_t running) const;

 private:
  struct Entry {
    std::shared_ptr<std::atomic<std::uint32_t>> open =
        std::make_shared<std::atomic<std::uint32_t>>(0);
    std::uint32_t weight = 1;
    std::uint64_t tokens_per_minute = 0;  // 0: no limit
    double level = 0;                     // tokens in the bucket
    Time filled;                          // when `level` was right
  };

  static void Fill(Entry& entry, std::uint64_t tokens_per_minute, Time now);

  const std::uint32_t most_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace penstock::router
