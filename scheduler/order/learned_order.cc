#include "scheduler/order/learned_order.h"

#include <algorithm>
#include <cstdint>

#include "scheduler/order/key_order.h"

namespace penstock::scheduler {
namespace {

std::uint64_t OutputLeft(const Work& work) {
  const Arrival& arrival = work.request;
  std::uint64_t expected = arrival.max_new_tokens;
  if (arrival.ranked_tokens > 0) expected = arrival.ranked_tokens;
  if (arrival.predicted_tokens > 0) expected = arrival.predicted_tokens;
  if (arrival.length_given) {
    expected = std::min<std::uint64_t>(expected, arrival.max_new_tokens);
  }
  const std::uint64_t now = work.generated.size();
  return expected > now ? expected - now : now;
}

}  // namespace

std::unique_ptr<OrderPolicy> MakeLearnedOrder(const Config& config, const ReplicaGroups& groups) {
  std::uint64_t chunk = config.max_step_tokens;
  if (config.max_batch_prefill_tokens > 0) {
    chunk = std::min<std::uint64_t>(chunk, config.max_batch_prefill_tokens);
  }
  return std::make_unique<KeyOrder>([chunk, &groups](const Work& work) {
    const std::uint64_t chunks = (groups.UncachedTokens(work) + chunk - 1) / chunk;
    return static_cast<std::int64_t>(OutputLeft(work) + chunks);
  });
}

}  // namespace penstock::scheduler
