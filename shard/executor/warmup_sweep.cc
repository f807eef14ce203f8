#include "shard/executor/warmup_sweep.h"

#include <algorithm>
#include <initializer_list>

namespace penstock::shard {
namespace {

// `values` up to `most`. If some are larger, `most` replaces them.
std::vector<std::uint32_t> Axis(std::initializer_list<std::uint32_t> values, std::uint32_t most) {
  std::vector<std::uint32_t> axis;
  for (const std::uint32_t value : values) {
    if (value <= most) axis.push_back(value);
  }
  if (axis.size() < values.size() && (axis.empty() || axis.back() != most)) axis.push_back(most);
  return axis;
}

}  // namespace

std::uint64_t WarmupWork(const StepTimeSample& step) {
  const std::uint64_t rows = step.prefill_tokens + step.decode_rows;
  return rows * (1024 + step.context_tokens);
}

void AddStepTime(const StepTimeSample& sample, v1::WarmupResponse& response) {
  v1::StepTime& to = *response.add_step_times();
  to.set_prefill_tokens(sample.prefill_tokens);
  to.set_decode_rows(sample.decode_rows);
  to.set_context_tokens(sample.context_tokens);
  to.set_nanoseconds(static_cast<std::uint64_t>(sample.time.count()));
}

std::vector<StepTimeSample> WarmupSweep(const SweepLimits& limits) {
  const std::uint32_t longest = limits.sequence_length;
  const std::uint32_t chunk = std::min(limits.step_tokens, longest);
  const std::uint32_t rows = std::min(limits.sequences, limits.step_tokens);
  std::vector<StepTimeSample> steps;
  for (const std::uint32_t tokens : Axis({1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096}, chunk)) {
    steps.push_back({tokens, 0, 0, Duration(0)});
  }
  for (const std::uint32_t batch : Axis({1, 8, 32, 128}, rows)) {
    // Each row writes the position after its context.
    const std::uint64_t fair = std::max<std::uint64_t>(limits.pool_tokens / batch, 1);
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, fair)) - 1;
    for (const std::uint32_t context : Axis({128, 1024, 4096, 16384}, most)) {
      steps.push_back({0, batch, context, Duration(0)});
    }
  }
  const std::uint32_t tokens = std::min(256u, chunk);
  for (const std::uint32_t cached :
       Axis({1024, 4096, 16384}, longest - std::min(longest, tokens))) {
    if (cached > 0) steps.push_back({tokens, 0, cached, Duration(0)});
  }
  // These tell whether the fixed costs of prompts and decodes add up in one step.
  for (const std::uint32_t tokens : {8u, 32u, 128u}) {
    const std::uint32_t batch = std::min({rows, 32u, tokens});
    const std::uint64_t fair = std::max<std::uint64_t>(limits.pool_tokens / batch, 1);
    const std::uint32_t context = std::min<std::uint64_t>({128, longest - 1, fair - 1});
    const std::uint32_t beside = std::min({tokens, chunk, limits.step_tokens - batch});
    if (beside > 0) steps.push_back({beside, batch, context, Duration(0)});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return WarmupWork(a) < WarmupWork(b); });
  return steps;
}

}  // namespace penstock::shard
