#include "router/metrics/step_metrics.h"

#include "router/metrics/families.h"
#include "router/metrics/tgi_metrics.h"

namespace penstock::router {

struct StepMetrics::Families {
  explicit Families(Registry& registry) : registry(registry) {}

  Registry& registry;
  Histogram& step_seconds = OneHistogram(registry, "penstock_step_duration_seconds",
                                         "From sending a plan to its result.", InterTokenBuckets());
  Counter& decode_rows =
      Counters(registry, "penstock_step_decode_rows_total", "Decode rows in all plans.").Add({});
  Counter& prefill_tokens =
      Counters(registry, "penstock_step_prefill_tokens_total", "Prefill tokens in all plans.")
          .Add({});
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
};

StepMetrics::StepMetrics(Registry& registry, const std::unique_ptr<TgiMetrics>& tgi)
    : own_(std::make_unique<Families>(registry)), tgi_(tgi) {}
StepMetrics::~StepMetrics() = default;

void StepMetrics::Step(Duration sent_to_result, std::uint64_t decode_rows,
                       std::uint64_t prefill_tokens) {
  if (tgi_) tgi_->Step(sent_to_result, decode_rows, prefill_tokens);
  own_->step_seconds.Observe(Seconds(sent_to_result));
  own_->decode_rows.Increment(static_cast<double>(decode_rows));
  own_->prefill_tokens.Increment(static_cast<double>(prefill_tokens));
}

void StepMetrics::Prediction(Duration predicted, Duration taken) {
  if (predicted <= Duration(0) || taken <= Duration(0)) return;
  own_->step_prediction.Observe(Seconds(predicted) / Seconds(taken));
}

void StepMetrics::SetDecodeSplit(std::uint64_t parts, std::uint64_t cells, std::uint64_t tokens) {
  const auto padding = static_cast<double>(cells - tokens);
  own_->split_parts.Set(static_cast<double>(parts));
  own_->split_cells.Set(static_cast<double>(cells));
  own_->split_sparsity.Set(padding / static_cast<double>(cells));
  own_->split_padding_per_token.Set(padding / static_cast<double>(tokens));
}

void StepMetrics::Resplit() { own_->resplits.Increment(); }
void StepMetrics::KvCells(const CellUse& use) {
  own_->cells_allocated.Set(static_cast<double>(use.allocated));
  own_->cells_filled.Set(static_cast<double>(use.filled));
  own_->cells_copied.Increment(static_cast<double>(use.copied));
}

void StepMetrics::SpeculatedTokens(std::uint64_t tokens) {
  if (tokens == 0) return;
  if (tgi_) tgi_->Skipped(tokens - 1);
  own_->speculation_steps.Increment();
  own_->accepted_drafts.Increment(static_cast<double>(tokens - 1));
}

void StepMetrics::DraftedTokens(std::uint64_t drafts) {
  own_->drafted.Increment(static_cast<double>(drafts));
}

void StepMetrics::LateMasks(std::uint64_t sequences) {
  own_->late_masks.Increment(static_cast<double>(sequences));
}

}  // namespace penstock::router
