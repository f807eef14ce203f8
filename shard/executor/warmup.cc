#include "shard/executor/warmup.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/status.h"
#include "common/time.h"
#include "shard/backend/device_sampler.h"
#include "shard/executor/padded_rows.h"
#include "shard/executor/warmup_sweep.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard {
namespace {

class Warmup {
 public:
  Warmup(const WarmupShape& shape, Backend& backend, const WarmupControl& control)
      : shape_(shape),
        backend_(backend),
        sampler_(dynamic_cast<DeviceSampler*>(&backend)),
        rows_(backend),
        control_(control) {
    const std::uint32_t blocks =
        (shape.max_sequence_length + shape.block_size - 1) / shape.block_size;
    table_.reserve(blocks);
    for (std::uint32_t i = 0; i < blocks; ++i) table_.push_back(BlockId(i));
    if (shape.window_blocks == 0) return;
    for (std::uint32_t i = 0; i < blocks; ++i) {
      window_table_.push_back(BlockId(i % shape.window_blocks));
    }
  }

  absl::Status AllocateCache() {
    PENSTOCK_RETURN_IF_ERROR(backend_.SetCells(shape_.cells, shape_.max_sequences));
    PENSTOCK_RETURN_IF_ERROR(backend_.SetSnapshots(0));
    const auto blocks = static_cast<std::uint32_t>(table_.size());
    const std::uint32_t most = shape_.window_blocks > 0 ? shape_.window_blocks : blocks;
    return backend_.AllocateCache(KvBlocks(blocks, std::min(blocks, most)));
  }

  // `candidates`: each decode computes that many rows for one position.
  absl::StatusOr<Duration> Run(const StepTimeSample& step, std::uint32_t candidates = 0) {
    if (!control_.continues()) return absl::CancelledError("the warm-up was interrupted");
    std::vector<RaggedSegment> segments;
    std::vector<std::uint32_t> logit_rows;
    std::uint32_t rows = 0;
    const auto add = [&](std::uint32_t count, std::uint32_t context) -> RaggedSegment& {
      RaggedSegment& segment = segments.emplace_back();
      segment.query_start = rows;
      segment.query_count = count;
      segment.context_length = context;
      segment.blocks = table_;
      segment.window_blocks = window_table_;
      segment.state = SlotId(static_cast<std::uint32_t>(segments.size()) - 1);
      rows += count;
      return segment;
    };
    for (std::uint32_t i = 0; i < step.decode_rows; ++i) {
      logit_rows.push_back(rows);
      add(std::max(1u, candidates), step.context_tokens).candidates = candidates > 0;
    }
    if (candidates == 0) {
      PENSTOCK_RETURN_IF_ERROR(rows_.ArrangeCopies(shape_.cells, segments));
    }
    if (step.decode_rows == 0) {
      add(step.prefill_tokens, step.context_tokens);
      logit_rows.push_back(rows - 1);
    } else if (step.prefill_tokens > 0) {
      add(step.prefill_tokens, 0);  // a chunk before the last of its prompt, so without logits
    }
    const std::vector<TokenId> tokens(rows, 0);
    const RaggedBatch batch{tokens, segments, logit_rows};
    const Time begin = control_.clock();
    if (candidates == 0 && CanSample(logit_rows.size())) {
      PENSTOCK_RETURN_IF_ERROR(SampleOnDevice(batch));
      return control_.clock() - begin;
    }
    PENSTOCK_RETURN_IF_ERROR(backend_.Execute(batch));
    if (candidates > 0) PENSTOCK_RETURN_IF_ERROR(Choose(step.decode_rows, candidates));
    PENSTOCK_RETURN_IF_ERROR(ReadLogits(static_cast<std::uint32_t>(logit_rows.size())));
    return control_.clock() - begin;
  }

 private:
  absl::Status ReadLogits(std::uint32_t rows) {
    for (std::uint32_t first = 0; first < rows; first += shape_.max_logit_rows) {
      const std::uint32_t count = std::min(shape_.max_logit_rows, rows - first);
      PENSTOCK_RETURN_IF_ERROR(backend_.Logits(first, count).status());
    }
    return absl::OkStatus();
  }

  // Steps are timed as they are served: where the device samples, no logits come to the host.
  bool CanSample(std::size_t rows) {
    if (sampler_ == nullptr) return false;
    requests_.clear();
    for (std::size_t i = 0; i < rows; ++i) requests_.push_back({greedy_, no_logprobs_});
    return sampler_->CanSample(requests_);
  }
  absl::Status SampleOnDevice(const RaggedBatch& batch) {
    const std::vector<std::int32_t> newest(batch.tokens.size(), -1);
    std::vector<DeviceToken> sampled(batch.logit_rows.size());
    PENSTOCK_RETURN_IF_ERROR(sampler_->BeginStep(batch, newest, requests_, nullptr));
    return sampler_->EndStep(sampled);
  }

  absl::Status Choose(std::uint32_t sequences, std::uint32_t candidates) {
    std::vector<float> similarities(candidates);
    std::vector<CandidateChoice> choices;
    for (std::uint32_t i = 0; i < sequences; ++i) {
      PENSTOCK_RETURN_IF_ERROR(backend_.Similarities(i, similarities));
      choices.push_back({i, 0});
    }
    return backend_.CommitCandidates(choices);
  }

  const WarmupShape& shape_;
  Backend& backend_;
  DeviceSampler* const sampler_;  // the backend; null if it has none
  PaddedRows rows_;
  const WarmupControl& control_;
  std::vector<BlockId> table_;
  std::vector<BlockId> window_table_;  // of KV group 1; empty: as table_
  const SamplingParams greedy_;
  const LogprobRequest no_logprobs_;
  std::vector<SampleRequest> requests_;
};

// One step and its time in every round that ran it.
struct Timed {
  StepTimeSample step;
  std::vector<Duration> times;
};

// If steps take no memory, the worst steps have at most this many positions. With 131,072 they
// would take a minute and show nothing more.
constexpr std::uint32_t kLongestTimed = 4096;

struct Peak {
  StepTimeSample step;
  std::uint32_t candidates = 0;
};

// The steps that may need most memory. They also warm up threads and caches.
std::vector<Peak> Peaks(const WarmupShape& shape, bool takes_memory) {
  const std::uint32_t longest =
      takes_memory ? shape.max_sequence_length : std::min(shape.max_sequence_length, kLongestTimed);
  const std::uint32_t chunk = std::min(shape.max_step_tokens, longest);
  const std::uint32_t rows = std::min(shape.max_sequences, shape.max_step_tokens);
  const std::uint64_t fair = std::max<std::uint64_t>(shape.pool_tokens / rows, 1);
  const auto full = static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, fair)) - 1;
  std::vector<Peak> peaks = {{{chunk, 0, longest - chunk}}, {{0, rows, full}}};
  if (takes_memory && shape.max_candidates > 0 && longest > 1) {
    const std::uint32_t sequences = shape.max_candidate_rows / shape.max_candidates;
    peaks.push_back({{0, sequences, std::max(full, 1u)}, shape.max_candidates});
    peaks.push_back({{0, 1, longest - 1}, shape.max_candidates});
  }
  return peaks;
}

// Of two measured times the smaller one counts, because noise only makes a step slower.
std::vector<StepTimeSample> Medians(std::vector<Timed>& steps) {
  std::vector<StepTimeSample> samples;
  for (Timed& timed : steps) {
    if (timed.times.empty()) continue;
    const auto middle = timed.times.begin() + (timed.times.size() - 1) / 2;
    std::nth_element(timed.times.begin(), middle, timed.times.end());
    timed.step.time = *middle;
    samples.push_back(timed.step);
  }
  return samples;
}

// What the next step may take, in proportion to its work.
Duration Expected(const Timed& next, const StepTimeSample& last, Duration last_time) {
  if (!next.times.empty()) return next.times.back();
  const std::uint64_t work = std::max<std::uint64_t>(WarmupWork(last), 1);
  return Duration(static_cast<Duration::rep>(static_cast<double>(last_time.count()) *
                                             static_cast<double>(WarmupWork(next.step)) /
                                             static_cast<double>(work)));
}

// Times the steps in order, as long as the next one is expected to end before `end`.
absl::Status TimeRound(std::vector<Timed>& steps, Time end, const WarmupControl& control,
                       Warmup& warmup) {
  StepTimeSample last;
  Duration last_time{0};
  for (Timed& timed : steps) {
    const Duration expected = Expected(timed, last, last_time);
    PENSTOCK_ASSIGN_OR_RETURN(const bool more, control.agree(control.clock() + expected < end));
    if (!more) break;
    PENSTOCK_ASSIGN_OR_RETURN(last_time, warmup.Run(timed.step));
    last = timed.step;
    timed.times.push_back(last_time);
  }
  return absl::OkStatus();
}

// Times the sweep until `end`. `worst` are the worst steps, each timed once. They are samples too:
// they determine the slopes of the cost model even if there is no time for other large steps.
absl::StatusOr<std::vector<StepTimeSample>> Sweep(const WarmupShape& shape,
                                                  std::vector<Timed> worst, Time end,
                                                  const WarmupControl& control, Warmup& warmup) {
  std::vector<Timed> steps;
  for (const StepTimeSample& step : WarmupSweep({shape.max_step_tokens, shape.max_sequences,
                                                 shape.max_sequence_length, shape.pool_tokens})) {
    const std::uint32_t sequences = step.decode_rows + (step.prefill_tokens > 0 ? 1 : 0);
    // Two sequences of a step cannot have one state.
    if (!shape.states || sequences <= shape.max_sequences) steps.push_back({step, {}});
  }
  std::move(worst.begin(), worst.end(), std::back_inserter(steps));
  const Duration left = end - control.clock();
  // The first round leaves some time for others: most steps of a server are small, and one time of
  // a small step is noise.
  PENSTOCK_RETURN_IF_ERROR(TimeRound(steps, end - left / 8, control, warmup));
  for (std::size_t round = 1; round < kWarmupRounds; ++round) {
    PENSTOCK_RETURN_IF_ERROR(TimeRound(steps, end, control, warmup));
  }
  std::vector<StepTimeSample> samples = Medians(steps);
  control.on_left_out(steps.size() - samples.size());
  return samples;
}

// A cheap step of a kept table that is still worth timing: of the decode batches the fastest one,
// of the prompts the fastest one of at least 32 tokens, or else the longest.
std::optional<StepTimeSample> Probe(const std::vector<StepTimeSample>& kept, bool decodes) {
  const auto size = [](const StepTimeSample& step) { return std::min(step.prefill_tokens, 32u); };
  std::optional<StepTimeSample> best;
  for (const StepTimeSample& step : kept) {
    if ((step.decode_rows > 0) != decodes || (decodes && step.prefill_tokens > 0)) continue;
    const bool better =
        !best || size(step) > size(*best) || (size(step) == size(*best) && step.time < best->time);
    if (better) best = step;
  }
  return best;
}

bool Near(Duration now, Duration then) {
  return now < kKeptWithin * then && then < kKeptWithin * now;
}

// Whether a cheap decode and a cheap prompt still take as long as the kept table says. The least of
// some times counts. All ranks have the same table and run the same steps; rank 0's clock decides.
absl::StatusOr<bool> StillHolds(const WarmupControl& control, Warmup& warmup) {
  for (const bool decodes : {false, true}) {
    const std::optional<StepTimeSample> probe = Probe(control.kept, decodes);
    if (!probe.has_value()) return false;
    Duration least = Duration::max();
    for (std::size_t i = 0; i < kWarmupRounds; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const Duration time, warmup.Run(*probe));
      least = std::min(least, time);
    }
    PENSTOCK_ASSIGN_OR_RETURN(const bool near, control.agree(Near(least, probe->time)));
    if (!near) return false;
  }
  return true;
}

absl::StatusOr<std::vector<Timed>> RunWorst(const std::vector<Peak>& peaks, Warmup& warmup) {
  std::vector<Timed> worst;
  for (const Peak& peak : peaks) {
    PENSTOCK_ASSIGN_OR_RETURN(const Duration time, warmup.Run(peak.step, peak.candidates));
    if (peak.candidates == 0) worst.push_back({peak.step, {time}});
  }
  return worst;
}

}  // namespace

absl::StatusOr<std::vector<StepTimeSample>> RunWarmup(const WarmupShape& shape, Backend& backend,
                                                      const WarmupControl& control) {
  Warmup warmup(shape, backend, control);
  PENSTOCK_RETURN_IF_ERROR(warmup.AllocateCache());
  PENSTOCK_ASSIGN_OR_RETURN(const bool takes_memory, control.agree(backend.TakesMemoryInSteps()));
  const std::vector<Peak> peaks = Peaks(shape, takes_memory);
  std::vector<Timed> worst;
  if (takes_memory) {
    PENSTOCK_ASSIGN_OR_RETURN(worst, RunWorst(peaks, warmup));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const bool holds, StillHolds(control, warmup));
  if (holds) return control.kept;
  Time end = control.clock() + kWarmupTime;
  if (!takes_memory) {
    PENSTOCK_ASSIGN_OR_RETURN(worst, RunWorst(peaks, warmup));
    end = std::max(end, control.clock() + kLeastSweepTime);
  }
  return Sweep(shape, std::move(worst), end, control, warmup);
}

}  // namespace penstock::shard
