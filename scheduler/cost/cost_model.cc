#include "scheduler/cost/cost_model.h"

#include <algorithm>
#include <bit>

#include "common/check.h"

namespace penstock::scheduler {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMostTime = std::uint64_t{1} << 60;  // in units: eighteen minutes
constexpr std::uint32_t kDriftOne = 1u << 16;

std::uint64_t Saturate(Wide value) {
  return value > kMostTime ? kMostTime : static_cast<std::uint64_t>(value);
}

std::uint64_t Times(std::uint64_t each, std::uint64_t count) {
  return Saturate(static_cast<Wide>(each) * count);
}

// The last knot that is not above `tokens` and has a successor.
std::size_t KnotBelow(std::uint64_t tokens) {
  if (tokens < 8) return static_cast<std::size_t>(tokens);
  const int octave = std::bit_width(tokens) - 3;  // tokens >> octave is 4 … 7
  const std::size_t knot = static_cast<std::size_t>(octave) * 4 + (tokens >> octave);
  return std::min(knot, CostTerms::kKnots - 2);
}

}  // namespace

std::uint64_t CostModel::Linear(std::uint64_t tokens) const {
  const std::size_t knot = KnotBelow(tokens);
  const std::uint64_t from = KnotTokens(knot);
  const std::uint64_t rise = terms_->linear[knot + 1] - terms_->linear[knot];
  const Wide part = static_cast<Wide>(rise) * (tokens - from) / (KnotTokens(knot + 1) - from);
  return Saturate(terms_->linear[knot] + part);
}

Duration CostModel::Predict(const StepShape& step) const {
  if (!ready() || step.Tokens() == 0) return Duration(0);
  std::uint64_t units = Linear(step.Tokens());
  if (step.prompt_tokens > 0) {
    units += terms_->prompt_step + Times(terms_->prompt_pair2, step.prompt_pairs2);
  }
  if (step.decode_rows > 0) {
    units += terms_->decode_step + Times(terms_->decode_row, step.decode_rows) +
             Times(terms_->decode_context, step.decode_context);
  }
  const std::uint64_t drifted = Saturate(static_cast<Wide>(units) * drift_ / kDriftOne);
  return Duration(static_cast<Duration::rep>(drifted >> CostTerms::kFractionBits));
}

void CostModel::Observe(Duration predicted, Duration actual) {
  if (predicted <= Duration(0) || actual <= Duration(0)) return;
  const auto expected = static_cast<std::uint64_t>(predicted.count());
  const auto taken = std::clamp(static_cast<std::uint64_t>(actual.count()), expected / 2,
                                Saturate(Wide{2} * expected));
  const auto seen = static_cast<std::uint64_t>(Wide{drift_} * taken / expected);
  const std::uint64_t followed = (std::uint64_t{31} * drift_ + seen) / 32;
  drift_ = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(followed, kDriftOne / 4, std::uint64_t{kDriftOne} * 4));
}

std::uint32_t CostModel::LargestChunk(const StepShape& step, std::uint64_t cached,
                                      std::uint32_t most, Duration target) const {
  PENSTOCK_CHECK(ready(), "the model is fitted");
  const auto fits = [&](std::uint32_t count) {
    StepShape with = step;
    with.AddChunk(cached, count);
    return Predict(with) <= target;
  };
  if (most == 0 || fits(most)) return most;
  std::uint32_t good = 0;
  std::uint32_t bad = most;
  while (bad - good > 1) {
    const std::uint32_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

std::uint64_t CostModel::LaunchCells() const {
  if (!ready()) return kDefaultLaunchCells;
  return terms_->decode_step / std::max<std::uint64_t>(terms_->decode_context, 1);
}

}  // namespace penstock::scheduler
