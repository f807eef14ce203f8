// What router/dispatch counts of engine steps: time, rows, splits, speculation, late masks.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "common/plan/step_result.h"
#include "common/time.h"
#include "router/metrics/families.h"
#include "router/metrics/tgi_metrics.h"

namespace penstock::router {

class StepMetrics {
 public:
  // `tgi` gets the same counts under its names, once it is set.
  StepMetrics(Registry& registry, const std::unique_ptr<TgiMetrics>& tgi)
      : make_(registry), tgi_(tgi) {}

  void Step(Duration sent_to_result, std::uint64_t decode_rows, std::uint64_t prefill_tokens) {
    if (tgi_) tgi_->Step(sent_to_result, decode_rows, prefill_tokens);
    Observe(step_seconds_, sent_to_result);
    Add(decode_rows_, decode_rows);
    Add(prefill_tokens_, prefill_tokens);
  }
  // The time that the cost model predicted for a step (0 = no prediction), and the shard's time.
  void Prediction(Duration predicted, Duration taken) {
    if (predicted <= Duration(0) || taken <= Duration(0)) return;
    step_prediction_.Observe(Seconds(predicted) / Seconds(taken));
  }
  // The latest decode batch that was split by length: sub-batches, padded cells, and how many of
  // these cells hold a token.
  void SetDecodeSplit(std::uint64_t parts, std::uint64_t cells, std::uint64_t tokens) {
    const auto padding = static_cast<double>(cells - tokens);
    Set(split_parts_, parts);
    Set(split_cells_, cells);
    split_sparsity_.Set(padding / static_cast<double>(cells));
    split_padding_per_token_.Set(padding / static_cast<double>(tokens));
  }
  void Resplit() { resplits_.Increment(); }
  // Use of the padded KV rows, as the shard reports it after a step.
  void KvCells(const CellUse& use) {
    Set(cells_allocated_, use.allocated);
    Set(cells_filled_, use.filled);
    Add(cells_copied_, use.copied);
  }
  // Tokens of one sequence in a step with speculation. All but the first were drafts.
  void SpeculatedTokens(std::uint64_t tokens) {
    if (tokens == 0) return;
    if (tgi_) tgi_->Skipped(tokens - 1);
    speculation_steps_.Increment();
    Add(accepted_drafts_, tokens - 1);
  }
  // Drafts that a step computed, right or wrong.
  void DraftedTokens(std::uint64_t drafts) { Add(drafted_, drafts); }
  // Tokens that a grammar forced.
  void ForcedTokens(std::uint64_t tokens) {
    if (tokens > 0) Add(forced_, tokens);
  }
  // Sequences that a step left out, since their mask was not ready.
  void LateMasks(std::uint64_t sequences) { Add(late_masks_, sequences); }

 private:
  Families make_;
  const std::unique_ptr<TgiMetrics>& tgi_;
  Histogram& step_seconds_ = make_.OneHistogram(
      "penstock_step_duration_seconds", "From sending a plan to its result.", InterTokenBuckets());
  Counter& decode_rows_ =
      make_.OneCounter("penstock_step_decode_rows_total", "Decode rows in all plans.");
  Counter& prefill_tokens_ =
      make_.OneCounter("penstock_step_prefill_tokens_total", "Prefill tokens in all plans.");
  Histogram& step_prediction_ =
      make_.OneHistogram("penstock_step_predicted_ratio",
                         "Predicted by actual time of an engine step, by the shard's own clock.",
                         {0.5, 0.67, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0});
  Gauge& split_parts_ = make_.OneGauge(
      "penstock_decode_parts", "Sub-batches of the latest decode batch that was split by length.");
  Gauge& split_cells_ =
      make_.OneGauge("penstock_decode_cells", "Cells of that batch, padding included.");
  Gauge& split_sparsity_ = make_.OneGauge("penstock_decode_sparsity",
                                          "Padding by cells of that batch (--max-sparsity).");
  Gauge& split_padding_per_token_ =
      make_.OneGauge("penstock_decode_padding_per_token", "Padding by tokens of that batch.");
  Counter& resplits_ = make_.OneCounter("penstock_decode_resplits_total",
                                        "Times that the decode batch was split again.");
  Gauge& cells_allocated_ =
      make_.OneGauge("penstock_kv_cells_allocated",
                     "Cells of dense sub-batches after the latest step (--kv-layout padded).");
  Gauge& cells_filled_ = make_.OneGauge("penstock_kv_cells_filled",
                                        "Of these, cells that hold a token; the rest is padding.");
  Counter& cells_copied_ = make_.OneCounter("penstock_kv_cells_copied_total",
                                            "Cells written because rows joined, or parts changed.");
  Counter& speculation_steps_ =
      make_.OneCounter("penstock_speculation_steps_total",
                       "With --speculate: how often a step brought a sequence tokens.");
  Counter& drafted_ =
      make_.OneCounter("penstock_speculation_drafted_tokens_total",
                       "With --speculate: drafts that steps computed, right or wrong.");
  Counter& accepted_drafts_ =
      make_.OneCounter("penstock_speculation_accepted_tokens_total",
                       "With --speculate: drafts that were right, the tokens beyond one a step.");
  Counter& forced_ =
      make_.OneCounter("penstock_grammar_forced_tokens_total",
                       "Tokens that were not sampled, because a grammar left one text.");
  Counter& late_masks_ =
      make_.OneCounter("penstock_grammar_late_masks_total",
                       "Steps that went on without a sequence whose mask was not ready.");
};

}  // namespace penstock::router
