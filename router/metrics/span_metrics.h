// What becomes of the spans that router/telemetry exports. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

namespace prometheus {
class Registry;
}

namespace penstock::router {

class SpanMetrics {
 public:
  explicit SpanMetrics(prometheus::Registry& registry);
  ~SpanMetrics();

  // kDropped: the queue was full. kFailed: an error.
  enum class Outcome : std::uint8_t { kSent, kDropped, kFailed };
  void Add(Outcome outcome, std::uint64_t count);

 private:
  struct Families;
  std::unique_ptr<Families> own_;
};

}  // namespace penstock::router
