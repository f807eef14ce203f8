// What router/dispatch counts of engine steps: time, rows, splits, speculation, late masks.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "common/plan/step_result.h"
#include "common/time.h"

namespace prometheus {
class Registry;
}

namespace penstock::router {

class TgiMetrics;

class StepMetrics {
 public:
  // `tgi` gets the same counts under its names, once it is set.
  StepMetrics(prometheus::Registry& registry, const std::unique_ptr<TgiMetrics>& tgi);
  ~StepMetrics();

  void Step(Duration sent_to_result, std::uint64_t decode_rows, std::uint64_t prefill_tokens);
  // The time that the cost model predicted for a step (0 = no prediction), and the shard's time.
  void Prediction(Duration predicted, Duration taken);
  // The latest decode batch that was split by length: sub-batches, padded cells, and how many of
  // these cells hold a token.
  void SetDecodeSplit(std::uint64_t parts, std::uint64_t cells, std::uint64_t tokens);
  void Resplit();
  // Use of the padded KV rows, as the shard reports it after a step.
  void KvCells(const CellUse& use);
  // Tokens of one sequence in a step with speculation. All but the first were drafts.
  void SpeculatedTokens(std::uint64_t tokens);
  void DraftedTokens(std::uint64_t drafts);  // drafts that a step computed, right or wrong
  void LateMasks(std::uint64_t sequences);   // sequences left out, their mask was not ready

 private:
  struct Families;
  std::unique_ptr<Families> own_;
  const std::unique_ptr<TgiMetrics>& tgi_;
};

}  // namespace penstock::router
