#include "sim/model/step_times.h"

#include <algorithm>

namespace penstock::sim {
namespace {

__extension__ using Wide = unsigned __int128;

using scheduler::CostTerms;

// 0 to 8 one by one, then four knots for each octave.
std::uint64_t Knot(std::size_t i) {
  return i < 8 ? i : (4 + i % 4) * (std::uint64_t{1} << (i / 4 - 1));
}

Wide LinearPart(const CostTerms& terms, std::uint64_t tokens) {
  std::size_t i = 0;
  while (i + 2 < CostTerms::kKnots && Knot(i + 1) <= tokens) ++i;
  const Wide rise = terms.linear[i + 1] - terms.linear[i];
  return terms.linear[i] + rise * (tokens - Knot(i)) / (Knot(i + 1) - Knot(i));
}

}  // namespace

StepWork StepWork::WithChunk(std::uint64_t cached, std::uint64_t count) const {
  StepWork with = *this;
  with.prompt_tokens += count;
  // Token i of the chunk reads cached + i + 1 positions; the diagonal counts half.
  for (std::uint64_t i = 0; i < count; ++i) with.prompt_pairs2 += 2 * (cached + i) + 1;
  return with;
}

Duration StepTimes::Predict(const StepWork& work) const {
  const std::uint64_t tokens = work.prompt_tokens + work.decode_rows;
  if (!terms_ || tokens == 0) return Duration(0);
  Wide units = LinearPart(*terms_, tokens);
  if (work.prompt_tokens > 0) {
    units += terms_->prompt_step + Wide{terms_->prompt_pair2} * work.prompt_pairs2;
  }
  if (work.decode_rows > 0) {
    units += terms_->decode_step + Wide{terms_->decode_row} * work.decode_rows +
             Wide{terms_->decode_context} * work.positions_read;
  }
  return Duration(static_cast<Duration::rep>((units * drift_ >> 16) >> CostTerms::kFractionBits));
}

// Moves the drift by 1/32 of its distance to each measured step. A step counts as at least half and
// at most twice the prediction.
void StepTimes::Observe(Duration predicted, Duration taken) {
  if (predicted <= Duration(0) || taken <= Duration(0)) return;
  const Duration clamped = std::clamp(taken, predicted / 2, predicted * 2);
  const auto seen = static_cast<std::uint64_t>(Wide{drift_} * static_cast<Wide>(clamped.count()) /
                                               static_cast<Wide>(predicted.count()));
  drift_ = std::clamp<std::uint64_t>((31 * drift_ + seen) / 32, 65536 / 4, 65536 * 4);
}

std::uint64_t StepTimes::LaunchCells() const {
  if (!terms_) return 256;
  return terms_->decode_step / std::max<std::uint64_t>(terms_->decode_context, 1);
}

}  // namespace penstock::sim
