#include "router/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "router/metrics/tgi_metrics.h"

namespace penstock::router {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;
using Buckets = Histogram::BucketBoundaries;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// 1, 2.5, 5 per decade.
Buckets LatencyBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250};
}
Buckets InterTokenBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
}
Buckets TokenBuckets() {
  Buckets bounds;
  for (int bound = 1; bound <= 131072; bound *= 2) bounds.push_back(bound);
  return bounds;
}

Family<Counter>& Counters(Registry& registry, const char* name, const char* help) {
  return BuildCounter().Name(name).Help(help).Register(registry);
}
Gauge& OneGauge(Registry& registry, const char* name, const char* help) {
  return BuildGauge().Name(name).Help(help).Register(registry).Add({});
}
Histogram& OneHistogram(Registry& registry, const char* name, const char* help,
                        const Buckets& buckets) {
  return BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

}  // namespace

struct Metrics::Impl {
  Registry registry;
  std::optional<TgiMetrics> tgi;
  std::uint32_t block_size = 0;

  Family<Counter>& responses =
      Counters(registry, "penstock_http_responses_total", "HTTP responses by route and status.");
  Gauge& connections = OneGauge(registry, "penstock_http_connections", "Open client connections.");
  Counter& connections_refused =
      Counters(registry, "penstock_http_connections_refused_total",
               "Connections refused because the connection limit was reached.")
          .Add({});
  Counter& tls_handshakes_failed =
      Counters(registry, "penstock_tls_handshakes_failed_total", "TLS handshakes that failed.")
          .Add({});

  Family<Counter>& requests =
      Counters(registry, "penstock_requests_total", "Generation requests received, by route.");
  Family<Counter>& success = Counters(registry, "penstock_requests_success_total",
                                      "Generation requests that succeeded, by finish reason.");
  Family<Counter>& failure = Counters(registry, "penstock_requests_failure_total",
                                      "Generation requests that ended in an error, by kind.");
  Counter& cancelled = Counters(registry, "penstock_requests_cancelled_total",
                                "Generation requests whose client went away or read too slowly.")
                           .Add({});
  Family<Counter>& tenant_requests =
      Counters(registry, "penstock_tenant_requests_total", "Generation requests, by API key.");
  Family<Counter>& tenant_tokens = Counters(registry, "penstock_tenant_tokens_total",
                                            "Prompt and generated tokens, by API key.");
  std::mutex tenants_mutex;
  std::set<std::string, std::less<>> tenants;  // under tenants_mutex: those with a label

  // The label of a tenant. Bounded, since API keys may be many and change.
  std::string TenantLabel(std::string_view tenant) {
    const std::lock_guard lock(tenants_mutex);
    if (tenants.find(tenant) != tenants.end()) return std::string(tenant);
    if (tenants.size() >= kMaxTenants) return "other";
    return *tenants.insert(std::string(tenant)).first;
  }

  Family<Counter>& unknown_keys =
      Counters(registry, "penstock_unknown_keys_total",
               "Keys in request bodies that no dialect knows; they are ignored.");

  Histogram& first_token = OneHistogram(registry, "penstock_time_to_first_token_seconds",
                                        "From arrival to the first token.", LatencyBuckets());
  Histogram& inter_token =
      OneHistogram(registry, "penstock_inter_token_latency_seconds",
                   "Between one token and the next of a request.", InterTokenBuckets());
  Histogram& queue_time = OneHistogram(registry, "penstock_request_queue_seconds",
                                       "From queued to the first plan.", LatencyBuckets());
  Histogram& duration = OneHistogram(registry, "penstock_request_duration_seconds",
                                     "From arrival to the last token.", LatencyBuckets());
  Counter& prompt_total =
      Counters(registry, "penstock_prompt_tokens_total", "Prompt tokens of all requests.").Add({});
  Counter& cached_total = Counters(registry, "penstock_cached_prompt_tokens_total",
                                   "Prompt tokens found in the prefix cache.")
                              .Add({});
  Counter& generated_total =
      Counters(registry, "penstock_generated_tokens_total", "Tokens generated.").Add({});
  Histogram& prompt_tokens = OneHistogram(registry, "penstock_request_prompt_tokens",
                                          "Prompt tokens per request.", TokenBuckets());
  Histogram& generated_tokens = OneHistogram(registry, "penstock_request_generated_tokens",
                                             "Generated tokens per request.", TokenBuckets());

  Gauge& waiting = OneGauge(registry, "penstock_queue_size", "Requests waiting for admission.");
  Gauge& running = OneGauge(registry, "penstock_requests_running", "Requests being computed.");
  Family<Gauge>& waiting_for = BuildGauge()
                                   .Name("penstock_queue_reasons")
                                   .Help("Waiting requests by what they wait for.")
                                   .Register(registry);
  Family<Counter>& decisions = Counters(registry, "penstock_scheduler_decisions_total",
                                        "Decisions of the scheduler, by kind.");
  Family<Counter>& admitted =
      Counters(registry, "penstock_requests_admitted_total",
               "Requests admitted, also after preemption, by admission policy and order.");
  Counter& preemptions = Counters(registry, "penstock_preemptions_total",
                                  "Running requests that were preempted, to be computed again.")
                             .Add({});
  Family<Gauge>& blocks = BuildGauge()
                              .Name("penstock_kv_blocks")
                              .Help("KV cache blocks by state; the states sum to the pool.")
                              .Register(registry);
  Gauge& blocks_free = blocks.Add({{"state", "free"}});
  Gauge& blocks_used = blocks.Add({{"state", "used"}});
  Gauge& blocks_cached = blocks.Add({{"state", "cached"}});
  Gauge& blocks_retiring = blocks.Add({{"state", "retiring"}});

  Family<Counter>& execute_messages =
      Counters(registry, "penstock_execute_messages_total",
               "Messages on the Execute streams, by direction, group and rank.");
  Gauge& plans_in_flight =
      OneGauge(registry, "penstock_plans_in_flight", "Plans sent and not yet answered.");
  Gauge& plans_in_flight_max =
      OneGauge(registry, "penstock_plans_in_flight_max",
               "Greatest number of plans in flight in one group since the start.");
  Histogram& step_seconds = OneHistogram(registry, "penstock_step_duration_seconds",
                                         "From sending a plan to its result.", InterTokenBuckets());
  Counter& decode_rows =
      Counters(registry, "penstock_step_decode_rows_total", "Decode rows in all plans.").Add({});
  Histogram& step_prediction =
      OneHistogram(registry, "penstock_step_predicted_ratio",
                   "Predicted by actual time of an engine step, by the shard's own clock",
                   {0.5, 0.67, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0});
  Gauge& split_parts = OneGauge(registry, "penstock_decode_parts",
                                "Sub-batches of the latest decode batch that was split by length");
  Gauge& split_cells =
      OneGauge(registry, "penstock_decode_cells", "Cells of that batch, padding included");
  Gauge& split_sparsity = OneGauge(registry, "penstock_decode_sparsity",
                                   "Padding by cells of that batch (--max-sparsity)");
  Gauge& split_padding_per_token =
      OneGauge(registry, "penstock_decode_padding_per_token", "Padding by tokens of that batch");
  Counter& resplits = Counters(registry, "penstock_decode_resplits_total",
                               "Times that the decode batch was split again.")
                          .Add({});
  Gauge& cells_allocated = OneGauge(registry, "penstock_kv_cells_allocated",
                                    "Cells of dense sub-batches after the latest step "
                                    "(--kv-layout padded)");
  Gauge& cells_filled = OneGauge(registry, "penstock_kv_cells_filled",
                                 "Of these, cells that hold a token; the rest is padding");
  Counter& cells_copied = Counters(registry, "penstock_kv_cells_copied_total",
                                   "Cells written because rows joined, or parts changed.")
                              .Add({});
  Counter& speculation_steps =
      Counters(registry, "penstock_speculation_steps_total",
               "With --speculate: how often a step brought a sequence tokens.")
          .Add({});
  Counter& drafted = Counters(registry, "penstock_speculation_drafted_tokens_total",
                              "With --speculate: drafts that steps computed, right or wrong.")
                         .Add({});
  Counter& accepted_drafts =
      Counters(registry, "penstock_speculation_accepted_tokens_total",
               "With --speculate: drafts that were right, the tokens beyond one a step.")
          .Add({});
  Counter& late_masks = Counters(registry, "penstock_grammar_late_masks_total",
                                 "Steps that went on without a sequence whose mask was not ready.")
                            .Add({});
  Counter& prefill_tokens =
      Counters(registry, "penstock_step_prefill_tokens_total", "Prefill tokens in all plans.")
          .Add({});

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

  Family<Counter>& spans = Counters(registry, "penstock_otlp_spans_total",
                                    "Spans for the collector of traces: sent, dropped because "
                                    "the queue was full, or failed.");

  // The metrics of a replica group, made when the group is first used.
  struct Group {
    Gauge& up;
    Counter& losses;
    Gauge& running;
    Gauge& blocks_free;
    Gauge& blocks_used;
    Gauge& blocks_cached;
    Gauge& blocks_retiring;
    Gauge& plans_in_flight;
  };
  Group& GroupOf(GroupId id);  // with groups_mutex held

  Family<Gauge>& Gauges(const char* name, const char* help) {
    return BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& group_up =
      Gauges("penstock_group_up", "1 while the replica group serves, else 0.");
  Family<Counter>& group_losses =
      Counters(registry, "penstock_group_losses_total", "How often a replica group was lost.");
  Family<Gauge>& group_running =
      Gauges("penstock_group_requests_running", "Requests being computed, by replica group.");
  Family<Gauge>& group_blocks =
      Gauges("penstock_group_kv_blocks", "KV cache blocks by replica group and state.");
  Family<Gauge>& group_plans =
      Gauges("penstock_group_plans_in_flight", "Plans sent and not yet answered, by group.");

  // Used at every step: looking a counter up by its labels would cost more than the step.
  std::map<std::tuple<Direction, GroupId, std::uint32_t>, Counter*> execute_counters;

  std::mutex groups_mutex;
  std::map<GroupId, Group> groups;
};

Metrics::Impl::Group& Metrics::Impl::GroupOf(GroupId id) {
  const auto found = groups.find(id);
  if (found != groups.end()) return found->second;
  const std::string name = std::to_string(id.value());
  const auto blocks = [&](const char* state) -> Gauge& {
    return group_blocks.Add({{"group", name}, {"state", state}});
  };
  const Group made{group_up.Add({{"group", name}}),
                   group_losses.Add({{"group", name}}),
                   group_running.Add({{"group", name}}),
                   blocks("free"),
                   blocks("used"),
                   blocks("cached"),
                   blocks("retiring"),
                   group_plans.Add({{"group", name}})};
  return groups.emplace(id, made).first->second;
}

Metrics::Metrics(std::string_view version) : impl_(std::make_unique<Impl>()) {
  BuildGauge()
      .Name("penstock_build_info")
      .Help("Always 1; the version is the label.")
      .Register(impl_->registry)
      .Add({{"version", std::string(version)}})
      .Set(1);
}

Metrics::~Metrics() = default;

void Metrics::AddTgiNames(std::uint32_t max_input_tokens, std::uint32_t max_total_tokens,
                          std::uint32_t block_size) {
  impl_->block_size = block_size;
  impl_->tgi.emplace(impl_->registry, max_input_tokens, max_total_tokens);
}

void Metrics::HttpResponse(std::string_view route, int status) {
  impl_->responses.Add({{"route", std::string(route)}, {"code", std::to_string(status)}})
      .Increment();
}
void Metrics::ConnectionOpened() { impl_->connections.Increment(); }
void Metrics::ConnectionClosed() { impl_->connections.Decrement(); }
void Metrics::ConnectionRefused() { impl_->connections_refused.Increment(); }
void Metrics::TlsHandshakeFailed() { impl_->tls_handshakes_failed.Increment(); }

void Metrics::RequestArrived(std::string_view route) {
  if (impl_->tgi) impl_->tgi->Arrived();
  impl_->requests.Add({{"route", std::string(route)}}).Increment();
}
void Metrics::RequestSucceeded(std::string_view finish_reason) {
  if (impl_->tgi) impl_->tgi->Succeeded();
  impl_->success.Add({{"finish_reason", std::string(finish_reason)}}).Increment();
}
void Metrics::RequestFailed(std::string_view kind) {
  if (impl_->tgi) impl_->tgi->Failed(kind);
  impl_->failure.Add({{"kind", std::string(kind)}}).Increment();
}
void Metrics::RequestCancelled() {
  impl_->cancelled.Increment();
  if (impl_->tgi) impl_->tgi->Failed("dropped");
}

void Metrics::UnknownKeys(std::string_view dialect, std::uint64_t count) {
  if (count == 0) return;
  impl_->unknown_keys.Add({{"dialect", std::string(dialect)}})
      .Increment(static_cast<double>(count));
}

void Metrics::TenantRequest(std::string_view tenant) {
  if (tenant.empty()) return;
  impl_->tenant_requests.Add({{"tenant", impl_->TenantLabel(tenant)}}).Increment();
}

void Metrics::TenantTokens(std::string_view tenant, std::uint64_t prompt, std::uint64_t generated) {
  if (tenant.empty()) return;
  const std::string label = impl_->TenantLabel(tenant);
  impl_->tenant_tokens.Add({{"tenant", label}, {"kind", "prompt"}})
      .Increment(static_cast<double>(prompt));
  impl_->tenant_tokens.Add({{"tenant", label}, {"kind", "generated"}})
      .Increment(static_cast<double>(generated));
}

void Metrics::FirstToken(Duration since_arrival) {
  impl_->first_token.Observe(Seconds(since_arrival));
}
void Metrics::InterToken(Duration since_previous) {
  impl_->inter_token.Observe(Seconds(since_previous));
}
void Metrics::QueueTime(Duration queued) { impl_->queue_time.Observe(Seconds(queued)); }
void Metrics::RequestDuration(Duration total) {
  impl_->duration.Observe(Seconds(total));
  if (impl_->tgi) impl_->tgi->Duration(total);
}

void Metrics::RequestTimes(Duration validation, Duration queue, Duration inference,
                           std::uint64_t generated) {
  if (impl_->tgi) impl_->tgi->Times(validation, queue, inference, generated);
}

void Metrics::MaxNewTokens(std::uint64_t tokens) {
  if (impl_->tgi) impl_->tgi->MaxNewTokens(tokens);
}

void Metrics::RequestTokens(std::uint64_t prompt, std::uint64_t cached, std::uint64_t generated) {
  if (impl_->tgi) impl_->tgi->Tokens(prompt, generated);
  impl_->prompt_total.Increment(static_cast<double>(prompt));
  impl_->cached_total.Increment(static_cast<double>(cached));
  impl_->generated_total.Increment(static_cast<double>(generated));
  impl_->prompt_tokens.Observe(static_cast<double>(prompt));
  impl_->generated_tokens.Observe(static_cast<double>(generated));
}

void Metrics::SetQueue(std::uint64_t waiting, std::uint64_t running) {
  if (impl_->tgi) impl_->tgi->Queue(waiting, running);
  impl_->waiting.Set(static_cast<double>(waiting));
  impl_->running.Set(static_cast<double>(running));
}

void Metrics::SetWaitingFor(std::string_view short_of, std::uint64_t waiting) {
  impl_->waiting_for.Add({{"short_of", std::string(short_of)}}).Set(static_cast<double>(waiting));
}
void Metrics::Decisions(std::string_view decision, std::uint64_t count) {
  impl_->decisions.Add({{"decision", std::string(decision)}}).Increment(static_cast<double>(count));
}
void Metrics::Admitted(std::string_view admission, std::string_view order, std::uint64_t count) {
  impl_->admitted.Add({{"admission", std::string(admission)}, {"order", std::string(order)}})
      .Increment(static_cast<double>(count));
}
void Metrics::Preempted(std::uint64_t count) {
  impl_->preemptions.Increment(static_cast<double>(count));
}

void Metrics::SetBlocks(std::uint64_t free, std::uint64_t used, std::uint64_t cached,
                        std::uint64_t retiring) {
  if (impl_->tgi) impl_->tgi->ReservedTokens((used + retiring) * impl_->block_size);
  impl_->blocks_used.Set(static_cast<double>(used));
  impl_->blocks_cached.Set(static_cast<double>(cached));
  impl_->blocks_retiring.Set(static_cast<double>(retiring));
  // Set last: a reader that sees freed blocks no longer sees them in the other states.
  impl_->blocks_free.Set(static_cast<double>(free));
}

void Metrics::ExecuteMessage(Direction direction, GroupId group, std::uint32_t rank) {
  const std::lock_guard lock(impl_->groups_mutex);
  Counter*& counter = impl_->execute_counters[{direction, group, rank}];
  if (counter == nullptr) {
    const char* name = direction == Direction::kPlan ? "plan" : "result";
    counter = &impl_->execute_messages.Add({{"direction", name},
                                            {"group", std::to_string(group.value())},
                                            {"rank", std::to_string(rank)}});
  }
  counter->Increment();
}

void Metrics::SetPlansInFlight(GroupId group, std::uint64_t plans) {
  const auto value = static_cast<double>(plans);
  const std::lock_guard lock(impl_->groups_mutex);
  Gauge& own = impl_->GroupOf(group).plans_in_flight;
  impl_->plans_in_flight.Increment(value - own.Value());
  own.Set(value);
  if (value > impl_->plans_in_flight_max.Value()) impl_->plans_in_flight_max.Set(value);
}

void Metrics::SetGroupUp(GroupId group, bool up) {
  const std::lock_guard lock(impl_->groups_mutex);
  Impl::Group& own = impl_->GroupOf(group);
  if (!up && own.up.Value() == 1) own.losses.Increment();
  own.up.Set(up ? 1 : 0);
}

void Metrics::SetGroupState(GroupId group, const GroupState& state) {
  const std::lock_guard lock(impl_->groups_mutex);
  Impl::Group& own = impl_->GroupOf(group);
  own.running.Set(static_cast<double>(state.running));
  own.blocks_used.Set(static_cast<double>(state.blocks_used));
  own.blocks_cached.Set(static_cast<double>(state.blocks_cached));
  own.blocks_retiring.Set(static_cast<double>(state.blocks_retiring));
  own.blocks_free.Set(static_cast<double>(state.blocks_free));
}

void Metrics::PrefixCache(std::uint64_t looked_up_tokens, std::uint64_t hit_tokens,
                          std::uint64_t evicted_blocks) {
  impl_->prefix_looked_up.Increment(static_cast<double>(looked_up_tokens));
  impl_->prefix_hits.Increment(static_cast<double>(hit_tokens));
  impl_->prefix_evictions.Increment(static_cast<double>(evicted_blocks));
}
void Metrics::SpeculatedTokens(std::uint64_t tokens) {
  if (tokens == 0) return;
  if (impl_->tgi) impl_->tgi->Skipped(tokens - 1);
  impl_->speculation_steps.Increment();
  impl_->accepted_drafts.Increment(static_cast<double>(tokens - 1));
}
void Metrics::DraftedTokens(std::uint64_t drafts) {
  impl_->drafted.Increment(static_cast<double>(drafts));
}
void Metrics::LateMasks(std::uint64_t sequences) {
  impl_->late_masks.Increment(static_cast<double>(sequences));
}
void Metrics::Step(Duration sent_to_result, std::uint64_t decode_rows,
                   std::uint64_t prefill_tokens) {
  if (impl_->tgi) impl_->tgi->Step(sent_to_result, decode_rows, prefill_tokens);
  impl_->step_seconds.Observe(Seconds(sent_to_result));
  impl_->decode_rows.Increment(static_cast<double>(decode_rows));
  impl_->prefill_tokens.Increment(static_cast<double>(prefill_tokens));
}

void Metrics::StepPrediction(Duration predicted, Duration taken) {
  if (predicted <= Duration(0) || taken <= Duration(0)) return;
  impl_->step_prediction.Observe(Seconds(predicted) / Seconds(taken));
}

void Metrics::SetDecodeSplit(std::uint64_t parts, std::uint64_t cells, std::uint64_t tokens) {
  const auto padding = static_cast<double>(cells - tokens);
  impl_->split_parts.Set(static_cast<double>(parts));
  impl_->split_cells.Set(static_cast<double>(cells));
  impl_->split_sparsity.Set(padding / static_cast<double>(cells));
  impl_->split_padding_per_token.Set(padding / static_cast<double>(tokens));
}

void Metrics::Spans(SpanOutcome outcome, std::uint64_t count) {
  if (count == 0) return;
  constexpr std::array kNames = {"sent", "dropped", "failed"};
  impl_->spans.Add({{"outcome", kNames[static_cast<std::size_t>(outcome)]}})
      .Increment(static_cast<double>(count));
}

void Metrics::Resplit() { impl_->resplits.Increment(); }

void Metrics::KvCells(const CellUse& use) {
  impl_->cells_allocated.Set(static_cast<double>(use.allocated));
  impl_->cells_filled.Set(static_cast<double>(use.filled));
  impl_->cells_copied.Increment(static_cast<double>(use.copied));
}

std::string Metrics::Render() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, impl_->registry.Collect());
  return std::move(out).str();
}

}  // namespace penstock::router
