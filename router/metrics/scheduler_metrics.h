// What router/dispatch knows of the scheduler: the queue, decisions, KV blocks, the prefix cache.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "router/metrics/block_gauges.h"
#include "router/metrics/families.h"
#include "router/metrics/tgi_metrics.h"

namespace penstock::router {

class SchedulerMetrics {
 public:
  // `tgi` gets the same counts under its names, once it is set.
  SchedulerMetrics(Registry& registry, const std::unique_ptr<TgiMetrics>& tgi)
      : make_(registry), tgi_(tgi) {}

  void SetQueue(std::uint64_t waiting, std::uint64_t running) {
    if (tgi_) tgi_->Queue(waiting, running);
    Set(waiting_, waiting);
    Set(running_, running);
  }
  std::uint64_t waiting() const { return static_cast<std::uint64_t>(waiting_.Value()); }
  std::uint64_t running() const { return static_cast<std::uint64_t>(running_.Value()); }
  // Waiting requests whose newest reason is `short_of`.
  void SetWaitingFor(std::string_view short_of, std::uint64_t waiting) {
    Set(waiting_for_.Add({{"short_of", std::string(short_of)}}), waiting);
  }
  // Decisions of one kind.
  void Decisions(std::string_view decision, std::uint64_t count) {
    Add(decisions_.Add({{"decision", std::string(decision)}}), count);
  }
  void Admitted(std::string_view admission, std::string_view order, std::uint64_t count) {
    const prometheus::Labels labels = {{"admission", std::string(admission)},
                                       {"order", std::string(order)}};
    Add(admitted_.Add(labels), count);
  }
  void Preempted(std::uint64_t count) { Add(preemptions_, count); }
  void SetBlocks(const BlockCounts& blocks) {
    if (tgi_) tgi_->ReservedBlocks(blocks.used + blocks.retiring);
    blocks_.Show(blocks);
  }
  void SetWindowBlocks(const BlockCounts& blocks) { window_blocks_.Show(blocks); }
  // Counts of the admissions and block allocations of one plan.
  void PrefixCache(std::uint64_t looked_up_tokens, std::uint64_t hit_tokens,
                   std::uint64_t evicted_blocks) {
    Add(prefix_looked_up_, looked_up_tokens);
    Add(prefix_hits_, hit_tokens);
    Add(prefix_evictions_, evicted_blocks);
  }

 private:
  Families make_;
  const std::unique_ptr<TgiMetrics>& tgi_;
  Gauge& waiting_ = make_.OneGauge("penstock_queue_size", "Requests waiting for admission.");
  Gauge& running_ = make_.OneGauge("penstock_requests_running", "Requests being computed.");
  Family<Gauge>& waiting_for_ =
      make_.Gauges("penstock_queue_reasons", "Waiting requests by what they wait for.", "short_of");
  Family<Counter>& decisions_ = make_.Counters("penstock_scheduler_decisions_total",
                                               "Decisions of the scheduler, by kind.", "decision");
  Family<Counter>& admitted_ =
      make_.Counters("penstock_requests_admitted_total",
                     "Requests admitted, also after preemption, by admission policy and order.",
                     "admission order");
  Counter& preemptions_ = make_.OneCounter(
      "penstock_preemptions_total", "Running requests that were preempted, to be computed again.");
  BlockGauges blocks_{make_.Gauges(
      "penstock_kv_blocks", "KV cache blocks by state; the states sum to the pool.", "state")};
  BlockGauges window_blocks_{
      make_.Gauges("penstock_kv_window_blocks",
                   "KV cache blocks of the layers with a sliding window, by state; they have a "
                   "pool of their own if other layers have none.",
                   "state")};
  Counter& prefix_looked_up_ = make_.OneCounter(
      "penstock_prefix_cache_lookup_tokens_total",
      "Prompt tokens of admitted requests that were looked up in the prefix cache.");
  Counter& prefix_hits_ = make_.OneCounter("penstock_prefix_cache_hit_tokens_total",
                                           "Of these, tokens that were found.");
  Counter& prefix_evictions_ =
      make_.OneCounter("penstock_prefix_cache_evicted_blocks_total",
                       "Blocks that the prefix cache gave up for others; "
                       "penstock_kv_blocks{state=\"cached\"} is what it holds.");
};

}  // namespace penstock::router
