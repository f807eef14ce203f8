// What router/dispatch knows of the scheduler: the queue, decisions, KV blocks, the prefix cache.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace prometheus {
class Registry;
}

namespace penstock::router {

class TgiMetrics;

class SchedulerMetrics {
 public:
  // `tgi` gets the same counts under its names, once it is set.
  SchedulerMetrics(prometheus::Registry& registry, const std::unique_ptr<TgiMetrics>& tgi);
  ~SchedulerMetrics();

  void SetQueue(std::uint64_t waiting, std::uint64_t running);
  // Waiting requests whose newest reason is `short_of`.
  void SetWaitingFor(std::string_view short_of, std::uint64_t waiting);
  // Decisions of one kind.
  void Decisions(std::string_view decision, std::uint64_t count);
  void Admitted(std::string_view admission, std::string_view order, std::uint64_t count);
  void Preempted(std::uint64_t count);
  void SetBlocks(std::uint64_t free, std::uint64_t used, std::uint64_t cached,
                 std::uint64_t retiring);
  // Of the admissions and block allocations of one plan.
  void PrefixCache(std::uint64_t looked_up_tokens, std::uint64_t hit_tokens,
                   std::uint64_t evicted_blocks);

 private:
  struct Families;
  std::unique_ptr<Families> own_;
  const std::unique_ptr<TgiMetrics>& tgi_;
};

}  // namespace penstock::router
