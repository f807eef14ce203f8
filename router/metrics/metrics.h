// Everything that GET /metrics shows. Hides Prometheus; all names are in metrics.cc.
//
// Each value is counted in one place:
// * router/http: responses by route and status, open connections.
// * router/api: requests (arrived, succeeded, failed, cancelled), latencies, tokens, unknown keys.
// * router/dispatch: gauges of queue and running requests, KV blocks, steps, Execute messages,
// plans
//   in flight.
//
// Labels never hold client input: routes are the patterns of the route table, kinds are closed
// sets, tenants are the operator's names of API keys.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "common/plan/step_result.h"
#include "common/time.h"

namespace penstock::router {

class Metrics {
 public:
  // `version` is shown as a label of penstock_build_info.
  explicit Metrics(std::string_view version = "");
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // From now on everything is counted under TGI's names as well. Once, before the first request.
  void AddTgiNames(std::uint32_t max_input_tokens, std::uint32_t max_total_tokens,
                   std::uint32_t block_size);

  // --- router/http
  void HttpResponse(std::string_view route, int status);
  void ConnectionOpened();
  void ConnectionClosed();
  void ConnectionRefused();  // over the connection limit
  void TlsHandshakeFailed();

  // --- router/api. Each request that arrived ends in exactly one of succeeded, failed, cancelled.
  void RequestArrived(std::string_view route);
  void RequestSucceeded(std::string_view finish_reason);
  void RequestFailed(std::string_view kind);
  void RequestCancelled();  // the client went away or was too slow
  void UnknownKeys(std::string_view dialect, std::uint64_t count);

  // Of a named API key. Beyond kMaxTenants names all others are counted as "other".
  static constexpr std::size_t kMaxTenants = 100;
  void TenantRequest(std::string_view tenant);
  void TenantTokens(std::string_view tenant, std::uint64_t prompt, std::uint64_t generated);

  void FirstToken(Duration since_arrival);
  void InterToken(Duration since_previous);
  void QueueTime(Duration queued);
  void RequestDuration(Duration total);
  void RequestTimes(Duration validation, Duration queue, Duration inference,
                    std::uint64_t generated);
  void MaxNewTokens(std::uint64_t tokens);
  // Totals and histograms; for a request that ended early with what it had computed.
  void RequestTokens(std::uint64_t prompt, std::uint64_t cached, std::uint64_t generated);

  // --- router/dispatch
  void SetQueue(std::uint64_t waiting, std::uint64_t running);
  // Waiting requests whose newest reason is `short_of`.
  void SetWaitingFor(std::string_view short_of, std::uint64_t waiting);
  // Decisions of one kind.
  void Decisions(std::string_view decision, std::uint64_t count);
  void Admitted(std::string_view admission, std::string_view order, std::uint64_t count);
  void Preempted(std::uint64_t count);
  void SetBlocks(std::uint64_t free, std::uint64_t used, std::uint64_t cached,
                 std::uint64_t retiring);
  enum class Direction : std::uint8_t { kPlan, kResult };  // router -> rank, rank -> router
  void ExecuteMessage(Direction direction, GroupId group, std::uint32_t rank);
  // Plans of a group that were sent and not yet answered. Their sum over the groups is shown too,
  // and the greatest value that any group had.
  void SetPlansInFlight(GroupId group, std::uint64_t plans);
  struct GroupState {
    std::uint64_t running = 0;  // requests
    std::uint64_t blocks_free = 0;
    std::uint64_t blocks_used = 0;
    std::uint64_t blocks_cached = 0;
    std::uint64_t blocks_retiring = 0;
  };
  void SetGroupUp(GroupId group, bool up);  // each change from up to down counts as a loss
  void SetGroupState(GroupId group, const GroupState& state);
  // How long the shard took for a step, against the cost model's prediction (0 = there was none).
  void StepPrediction(Duration predicted, Duration taken);
  // The latest decode batch that was split by length: launches, padded cells, thereof tokens.
  void SetDecodeSplit(std::uint64_t parts, std::uint64_t cells, std::uint64_t tokens);
  void Resplit();
  // Row store of the padded KV layout, as the shard reports it after a step.
  void KvCells(const CellUse& use);
  // At the admissions and in the drawing of blocks for one plan.
  void PrefixCache(std::uint64_t looked_up_tokens, std::uint64_t hit_tokens,
                   std::uint64_t evicted_blocks);
  // What a step with speculation brought one sequence: all but the first were drafts.
  void SpeculatedTokens(std::uint64_t tokens);
  void DraftedTokens(std::uint64_t drafts);  // that a step computed, right or wrong
  void LateMasks(std::uint64_t sequences);   // that a step went on without (grammars)
  void Step(Duration sent_to_result, std::uint64_t decode_rows, std::uint64_t prefill_tokens);

  // --- router/telemetry
  enum class SpanOutcome : std::uint8_t { kSent, kDropped, kFailed };  // by the bound, by an error
  void Spans(SpanOutcome outcome, std::uint64_t count);

  // The text exposition format 0.0.4.
  std::string Render() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::router
