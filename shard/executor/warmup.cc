#include "shard/executor/warmup.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/status.h"
#include "common/time.h"
#include "shard/executor/warmup_sweep.h"

namespace penstock::shard {
namespace {

// A step of `segments` sequences with `rows` rows each after `context` positions.
struct Shape {
  std::uint32_t segments = 1;
  std::uint32_t rows = 1;
  std::uint32_t context = 0;
  bool candidates = false;  // the rows are candidates for one position
  bool decodes = false;
  std::uint32_t prompt = 0;  // tokens of one more sequence, from its first on
};

// Positions of the padded KV rows in a warm-up. Beyond it costs are proportional.
constexpr std::uint32_t kMaxCells = 65'536;

std::uint32_t CellsOf(const WarmupShape& shape) { return std::min(shape.cells, kMaxCells); }

std::uint32_t MostRows(const WarmupShape& shape) {
  return shape.cells > 0 ? std::min(shape.max_sequences, shape.cells) : shape.max_sequences;
}

// Positions of all rows of a decode batch.
std::uint64_t DecodePositions(const WarmupShape& shape) {
  return shape.cells > 0 ? CellsOf(shape) : shape.pool_tokens;
}

class Warmup {
 public:
  Warmup(const WarmupShape& shape, Backend& backend, const WarmupControl& control)
      : shape_(shape), backend_(backend), control_(control) {
    const std::uint32_t blocks =
        (shape.max_sequence_length + shape.block_size - 1) / shape.block_size;
    table_.reserve(blocks);
    for (std::uint32_t i = 0; i < blocks; ++i) table_.push_back(BlockId(i));
  }

  absl::Status AllocateCache() {
    PENSTOCK_RETURN_IF_ERROR(backend_.AllocateCache(static_cast<std::uint32_t>(table_.size())));
    return backend_.AllocateCells(CellsOf(shape_));
  }

  absl::StatusOr<Duration> Run(const Shape& step) {
    if (!control_.continues()) return absl::CancelledError("the warm-up was interrupted");
    const std::uint32_t rows = step.segments * step.rows;
    std::vector<TokenId> tokens(std::size_t{rows} + step.prompt, 0);
    std::vector<RaggedSegment> segments;
    std::vector<std::uint32_t> logit_rows;
    const bool padded = shape_.cells > 0 && step.decodes;
    if (padded) PENSTOCK_RETURN_IF_ERROR(ArrangeRows(step));
    for (std::uint32_t i = 0; i < step.segments; ++i) {
      RaggedSegment& segment = segments.emplace_back();
      segment.query_start = i * step.rows;
      segment.query_count = step.rows;
      segment.context_length = step.context;
      segment.blocks = table_;
      segment.candidates = step.candidates;
      if (padded) segment.row = SlotId(i);
      logit_rows.push_back(step.candidates ? i * step.rows : (i + 1) * step.rows - 1);
    }
    if (step.prompt > 0) segments.push_back(Prompt(rows, step.prompt));
    const Time begin = control_.clock();
    PENSTOCK_RETURN_IF_ERROR(backend_.Execute({tokens, segments, logit_rows}));
    if (step.candidates) PENSTOCK_RETURN_IF_ERROR(Choose(step));
    for (std::uint32_t first = 0; first < step.segments; first += shape_.max_logit_rows) {
      const std::uint32_t count = std::min(shape_.max_logit_rows, step.segments - first);
      PENSTOCK_RETURN_IF_ERROR(backend_.Logits(first, count).status());
    }
    return control_.clock() - begin;
  }

 private:
  // A chunk before the last of its prompt, so without logits.
  RaggedSegment Prompt(std::uint32_t start, std::uint32_t tokens) const {
    RaggedSegment segment;
    segment.query_start = start;
    segment.query_count = tokens;
    segment.blocks = table_;
    return segment;
  }

  // One sub-batch whose rows are all copied out of blocks.
  absl::Status ArrangeRows(const Shape& step) {
    PENSTOCK_RETURN_IF_ERROR(backend_.ArrangeCells({}).status());
    CellPart part;
    part.width = step.context + step.rows;
    for (std::uint32_t i = 0; i < step.segments; ++i) {
      part.rows.push_back({SlotId(i), step.context, table_});
    }
    return backend_.ArrangeCells({&part, 1}).status();
  }

  absl::Status Choose(const Shape& step) {
    std::vector<float> similarities(step.rows);
    std::vector<CandidateChoice> choices;
    for (std::uint32_t i = 0; i < step.segments; ++i) {
      PENSTOCK_RETURN_IF_ERROR(backend_.Similarities(i, similarities));
      choices.push_back({i, 0});
    }
    return backend_.CommitCandidates(choices);
  }

  const WarmupShape& shape_;
  Backend& backend_;
  const WarmupControl& control_;
  std::vector<BlockId> table_;
};

Shape ShapeOf(const StepTimeSample& step) {
  if (step.decode_rows > 0) {
    return {step.decode_rows, 1, step.context_tokens, false, true, step.prefill_tokens};
  }
  return {1, step.prefill_tokens, step.context_tokens};
}

StepTimeSample SampleOf(const Shape& step) {
  if (step.decodes) return {0, step.segments, step.context, Duration(0)};
  return {step.rows, 0, step.context, Duration(0)};
}

// One step and its time in every round that ran it.
struct Timed {
  StepTimeSample step;
  std::vector<Duration> times;
};

// If steps take no memory, the worst steps have at most this many positions. With 131,072 they
// would take a minute and show nothing more.
constexpr std::uint32_t kLongestTimed = 4096;

// The steps that may need most memory. They also warm up threads and caches.
std::vector<Shape> Peaks(const WarmupShape& shape, bool takes_memory) {
  const std::uint32_t longest =
      takes_memory ? shape.max_sequence_length : std::min(shape.max_sequence_length, kLongestTimed);
  const std::uint32_t chunk = std::min(shape.max_step_tokens, longest);
  const std::uint32_t rows = std::min(MostRows(shape), shape.max_step_tokens);
  const std::uint64_t fair = std::max<std::uint64_t>(DecodePositions(shape) / rows, 1);
  const auto full = static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, fair)) - 1;
  std::vector<Shape> peaks = {{1, chunk, longest - chunk}, {rows, 1, full, false, true}};
  if (takes_memory && shape.max_candidates > 0 && longest > 1) {
    const std::uint32_t sequences = shape.max_candidate_rows / shape.max_candidates;
    peaks.push_back({sequences, shape.max_candidates, std::max(full, 1u), true});
    peaks.push_back({1, shape.max_candidates, longest - 1, true});
  }
  return peaks;
}

// Of two times the smaller one counts: noise only ever makes a step slower.
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

using RunStep = std::function<absl::StatusOr<Duration>(const Shape& step)>;

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
                       const RunStep& run) {
  StepTimeSample last;
  Duration last_time{0};
  for (Timed& timed : steps) {
    const Duration expected = Expected(timed, last, last_time);
    PENSTOCK_ASSIGN_OR_RETURN(const bool more, control.agree(control.clock() + expected < end));
    if (!more) break;
    PENSTOCK_ASSIGN_OR_RETURN(last_time, run(ShapeOf(timed.step)));
    last = timed.step;
    timed.times.push_back(last_time);
  }
  return absl::OkStatus();
}

// Times the sweep. `worst` are the worst steps, each timed once. They are samples too: they
// determine the slopes of the cost model even if there is no time for other large steps.
absl::StatusOr<std::vector<StepTimeSample>> Sweep(const WarmupShape& shape,
                                                  std::vector<Timed> worst,
                                                  const WarmupControl& control,
                                                  const RunStep& run) {
  std::vector<Timed> steps;
  for (const StepTimeSample& step :
       WarmupSweep({shape.max_step_tokens, MostRows(shape), shape.max_sequence_length,
                    DecodePositions(shape)})) {
    steps.push_back({step, {}});
  }
  std::move(worst.begin(), worst.end(), std::back_inserter(steps));
  const Time end = control.clock() + kWarmupTime;
  // The first round leaves some time for others: most steps of a server are small, and one time of
  // a small step is noise.
  PENSTOCK_RETURN_IF_ERROR(TimeRound(steps, end - kWarmupTime / 8, control, run));
  for (std::size_t round = 1; round < kWarmupRounds; ++round) {
    PENSTOCK_RETURN_IF_ERROR(TimeRound(steps, end, control, run));
  }
  return Medians(steps);
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
absl::StatusOr<bool> StillHolds(const WarmupControl& control, const RunStep& run) {
  for (const bool decodes : {false, true}) {
    const std::optional<StepTimeSample> probe = Probe(control.kept, decodes);
    if (!probe.has_value()) return false;
    Duration least = Duration::max();
    for (std::size_t i = 0; i < kWarmupRounds; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const Duration time, run(ShapeOf(*probe)));
      least = std::min(least, time);
    }
    PENSTOCK_ASSIGN_OR_RETURN(const bool near, control.agree(Near(least, probe->time)));
    if (!near) return false;
  }
  return true;
}

absl::StatusOr<std::vector<Timed>> RunWorst(const std::vector<Shape>& peaks, const RunStep& run) {
  std::vector<Timed> worst;
  for (const Shape& step : peaks) {
    PENSTOCK_ASSIGN_OR_RETURN(const Duration time, run(step));
    if (!step.candidates) worst.push_back({SampleOf(step), {time}});
  }
  return worst;
}

}  // namespace

absl::StatusOr<std::vector<StepTimeSample>> RunWarmup(const WarmupShape& shape, Backend& backend,
                                                      const WarmupControl& control) {
  Warmup warmup(shape, backend, control);
  PENSTOCK_RETURN_IF_ERROR(warmup.AllocateCache());
  const RunStep run = [&warmup](const Shape& step) { return warmup.Run(step); };
  PENSTOCK_ASSIGN_OR_RETURN(const bool takes_memory, control.agree(backend.TakesMemoryInSteps()));
  const std::vector<Shape> peaks = Peaks(shape, takes_memory);
  std::vector<Timed> worst;
  if (takes_memory) {
    PENSTOCK_ASSIGN_OR_RETURN(worst, RunWorst(peaks, run));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const bool holds, StillHolds(control, run));
  if (holds) return control.kept;
  if (!takes_memory) {
    PENSTOCK_ASSIGN_OR_RETURN(worst, RunWorst(peaks, run));
  }
  return Sweep(shape, std::move(worst), control, run);
}

}  // namespace penstock::shard
