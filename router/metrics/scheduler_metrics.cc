#include "router/metrics/scheduler_metrics.h"

#include <string>

#include "router/metrics/families.h"
#include "router/metrics/tgi_metrics.h"

namespace penstock::router {

struct SchedulerMetrics::Families {
  explicit Families(Registry& registry) : registry(registry) {}

  Registry& registry;
  Gauge& waiting = OneGauge(registry, "penstock_queue_size", "Requests waiting for admission.");
  Gauge& running = OneGauge(registry, "penstock_requests_running", "Requests being computed.");
  Family<Gauge>& waiting_for =
      Gauges(registry, "penstock_queue_reasons", "Waiting requests by what they wait for.");
  Family<Counter>& decisions = Counters(registry, "penstock_scheduler_decisions_total",
                                        "Decisions of the scheduler, by kind.");
  Family<Counter>& admitted =
      Counters(registry, "penstock_requests_admitted_total",
               "Requests admitted, also after preemption, by admission policy and order.");
  Counter& preemptions = Counters(registry, "penstock_preemptions_total",
                                  "Running requests that were preempted, to be computed again.")
                             .Add({});
  Family<Gauge>& blocks = Gauges(registry, "penstock_kv_blocks",
                                 "KV cache blocks by state; the states sum to the pool.");
  Gauge& blocks_free = blocks.Add({{"state", "free"}});
  Gauge& blocks_used = blocks.Add({{"state", "used"}});
  Gauge& blocks_cached = blocks.Add({{"state", "cached"}});
  Gauge& blocks_retiring = blocks.Add({{"state", "retiring"}});
  Counter& prefix_looked_up =
      Counters(registry, "penstock_prefix_cache_lookup_tokens_total",
               "Prompt tokens of admitted requests that were looked up in the prefix cache.")
          .Add({});
  Counter& prefix_hits = Counters(registry, "penstock_prefix_cache_hit_tokens_total",
                                  "Of these, tokens that were found.")
                             .Add({});
  Counter& prefix_evictions = Counters(registry, "penstock_prefix_cache_evicted_blocks_total",
                                       "Blocks that the prefix cache gave up for others; "
                                       "penstock_kv_blocks{state=\"cached\"} is what it holds.")
                                  .Add({});
};

SchedulerMetrics::SchedulerMetrics(Registry& registry, const std::unique_ptr<TgiMetrics>& tgi)
    : own_(std::make_unique<Families>(registry)), tgi_(tgi) {}
SchedulerMetrics::~SchedulerMetrics() = default;

void SchedulerMetrics::SetQueue(std::uint64_t waiting, std::uint64_t running) {
  if (tgi_) tgi_->Queue(waiting, running);
  own_->waiting.Set(static_cast<double>(waiting));
  own_->running.Set(static_cast<double>(running));
}

void SchedulerMetrics::SetWaitingFor(std::string_view short_of, std::uint64_t waiting) {
  own_->waiting_for.Add({{"short_of", std::string(short_of)}}).Set(static_cast<double>(waiting));
}

void SchedulerMetrics::Decisions(std::string_view decision, std::uint64_t count) {
  own_->decisions.Add({{"decision", std::string(decision)}}).Increment(static_cast<double>(count));
}

void SchedulerMetrics::Admitted(std::string_view admission, std::string_view order,
                                std::uint64_t count) {
  own_->admitted.Add({{"admission", std::string(admission)}, {"order", std::string(order)}})
      .Increment(static_cast<double>(count));
}

void SchedulerMetrics::Preempted(std::uint64_t count) {
  own_->preemptions.Increment(static_cast<double>(count));
}

void SchedulerMetrics::SetBlocks(std::uint64_t free, std::uint64_t used, std::uint64_t cached,
                                 std::uint64_t retiring) {
  if (tgi_) tgi_->ReservedBlocks(used + retiring);
  own_->blocks_used.Set(static_cast<double>(used));
  own_->blocks_cached.Set(static_cast<double>(cached));
  own_->blocks_retiring.Set(static_cast<double>(retiring));
  // Set last, so that no reader counts a freed block twice.
  own_->blocks_free.Set(static_cast<double>(free));
}

void SchedulerMetrics::PrefixCache(std::uint64_t looked_up_tokens, std::uint64_t hit_tokens,
                                   std::uint64_t evicted_blocks) {
  own_->prefix_looked_up.Increment(static_cast<double>(looked_up_tokens));
  own_->prefix_hits.Increment(static_cast<double>(hit_tokens));
  own_->prefix_evictions.Increment(static_cast<double>(evicted_blocks));
}

}  // namespace penstock::router
