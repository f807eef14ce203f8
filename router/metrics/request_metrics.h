// What router/api counts of generation requests: outcomes, latencies, tokens, unknown keys.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/time.h"

namespace prometheus {
class Registry;
}

namespace penstock::router {

class TgiMetrics;

class RequestMetrics {
 public:
  // `tgi` gets the same counts under its names, once it is set.
  RequestMetrics(prometheus::Registry& registry, const std::unique_ptr<TgiMetrics>& tgi);
  ~RequestMetrics();

  // Each request that arrived ends in exactly one of succeeded, failed, cancelled.
  void Arrived(std::string_view route);
  void Succeeded(std::string_view finish_reason);
  void Failed(std::string_view kind);
  void Cancelled();  // the client went away or was too slow
  void UnknownKeys(std::string_view dialect, std::uint64_t count);
  void FirstToken(Duration since_arrival);
  void InterToken(Duration since_previous);
  void QueueTime(Duration queued);
  void TotalTime(Duration total);
  void Times(Duration validation, Duration queue, Duration inference, std::uint64_t generated);
  void MaxNewTokens(std::uint64_t tokens);
  // Totals and histograms. A request that ended early counts the tokens that it had computed.
  void Tokens(std::uint64_t prompt, std::uint64_t cached, std::uint64_t generated);

 private:
  struct Families;
  std::unique_ptr<Families> own_;
  const std::unique_ptr<TgiMetrics>& tgi_;
};

}  // namespace penstock::router
