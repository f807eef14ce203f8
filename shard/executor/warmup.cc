#include "shard/executor/warmup.h"

#include <algorithm>
#include <numeric>

#include "common/status.h"
#include "common/time.h"

namespace penstock::shard {
namespace {

// A step of `segments` sequences with `rows` rows each after `context` positions.
struct Shape {
  std::uint32_t segments = 1;
  std::uint32_t rows = 1;
  std::uint32_t context = 0;
};

class Warmup {
 public:
  Warmup(const WarmupShape& shape, Backend& backend) : shape_(shape), backend_(backend) {
    const std::uint32_t blocks =
        (shape.max_sequence_length + shape.block_size - 1) / shape.block_size;
    table_.reserve(blocks);
    for (std::uint32_t i = 0; i < blocks; ++i) table_.push_back(BlockId(i));
  }

  absl::Status AllocateCache() {
    return backend_.AllocateCache(static_cast<std::uint32_t>(table_.size()));
  }

  absl::StatusOr<Duration> Run(const Shape& step) {
    std::vector<TokenId> tokens(std::size_t{step.segments} * step.rows, 0);
    std::vector<RaggedSegment> segments;
    std::vector<std::uint32_t> logit_rows;
    for (std::uint32_t i = 0; i < step.segments; ++i) {
      segments.push_back({i * step.rows, step.rows, step.context, table_});
      logit_rows.push_back((i + 1) * step.rows - 1);
    }
    const Time begin = SteadyNow();
    PENSTOCK_RETURN_IF_ERROR(backend_.Execute({tokens, segments, logit_rows}));
    for (std::uint32_t first = 0; first < step.segments; first += shape_.max_logit_rows) {
      const std::uint32_t count = std::min(shape_.max_logit_rows, step.segments - first);
      PENSTOCK_RETURN_IF_ERROR(backend_.Logits(first, count).status());
    }
    return SteadyNow() - begin;
  }

 private:
  const WarmupShape& shape_;
  Backend& backend_;
  std::vector<BlockId> table_;
};

StepTimeSample SampleOf(const Shape& step, Duration time) {
  if (step.rows > 1) return {step.segments * step.rows, 0, 0, time};
  return {0, step.segments, step.context, time};
}

}  // namespace

absl::StatusOr<std::vector<StepTimeSample>> RunWarmup(const WarmupShape& shape, Backend& backend,
                                                      const std::function<bool()>& go_on) {
  const std::uint32_t longest = shape.max_sequence_length;
  const std::uint32_t chunk = std::min(shape.max_step_tokens, longest);
  const std::uint32_t rows = std::min(shape.max_sequences, shape.max_step_tokens);
  const std::uint64_t fair = std::max<std::uint64_t>(shape.pool_tokens / rows, 1);
  const auto full = static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, fair)) - 1;

  // First the steps that take the most memory; they also wake threads and caches up.
  const Shape peaks[] = {{1, chunk, longest - chunk}, {rows, 1, full}};
  const Shape measured[] = {
      {1, chunk, 0}, {1, 1, 0}, {1, 1, longest - 1}, {rows, 1, 0}, {rows, 1, full}};
  Warmup warmup(shape, backend);
  PENSTOCK_RETURN_IF_ERROR(warmup.AllocateCache());
  std::vector<StepTimeSample> samples;
  const auto run = [&](const Shape& step, bool keep) -> absl::Status {
    if (!go_on()) return absl::CancelledError("the warm-up was interrupted");
    PENSTOCK_ASSIGN_OR_RETURN(const Duration time, warmup.Run(step));
    if (keep) samples.push_back(SampleOf(step, time));
    return absl::OkStatus();
  };
  for (const Shape& step : peaks) PENSTOCK_RETURN_IF_ERROR(run(step, false));
  for (const Shape& step : measured) PENSTOCK_RETURN_IF_ERROR(run(step, true));
  return samples;
}

}  // namespace penstock::shard
