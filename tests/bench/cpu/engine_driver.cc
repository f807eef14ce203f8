#include "tests/bench/cpu/engine_driver.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "common/status.h"

namespace penstock::shard {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSource = EngineDriver::kMaxRows;  // the slot whose K/V are copied
constexpr std::uint32_t kMaxStepTokens = 2048;
constexpr std::uint32_t kSourceChunk = 512;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Segment PromptSegment(std::uint32_t slot, std::uint32_t first, std::uint32_t count,
                      Segment::Logits logits) {
  Segment segment;
  segment.kind = Segment::Kind::kPrompt;
  segment.slot = SlotId(slot);
  segment.first = first;
  segment.count = count;
  segment.logits = logits;
  return segment;
}

}  // namespace

EngineDriver::EngineDriver(ModelRankOptions options, std::uint32_t pool_tokens,
                           std::uint32_t max_length)
    : block_size_(options.block_size),
      pool_tokens_(pool_tokens),
      max_length_(max_length),
      engine_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<EngineDriver>> EngineDriver::Open(ModelRankOptions options,
                                                                 std::uint32_t pool_tokens,
                                                                 std::uint32_t max_length) {
  options.grammars = false;
  options.prefault_all = true;  // no page faults in what is measured
  std::unique_ptr<EngineDriver> driver(
      new EngineDriver(std::move(options), pool_tokens, max_length));
  PENSTOCK_RETURN_IF_ERROR(driver->Prepare());
  return driver;
}

absl::Status EngineDriver::Prepare() {
  const auto begin = Clock::now();
  PENSTOCK_RETURN_IF_ERROR(engine_.Load([](const v1::LoadProgress&) {}));
  load_seconds_ = Since(begin);
  v1::ConfigureRequest setup;
  setup.set_world_size(1);
  setup.set_fingerprint(engine_.Facts().fingerprint());
  setup.mutable_limits()->set_max_step_tokens(kMaxStepTokens);
  setup.mutable_limits()->set_max_sequences(kMaxRows + 1);
  setup.mutable_limits()->set_max_sequence_length(max_length_);
  PENSTOCK_RETURN_IF_ERROR(engine_.Configure(setup));
  const std::uint32_t blocks = BlocksFor(pool_tokens_) + BlocksFor(max_length_);
  PENSTOCK_RETURN_IF_ERROR(engine_.Commit({blocks, 0}).status());
  std::mt19937 random(1);
  std::uniform_int_distribution<TokenId> token(
      3, static_cast<TokenId>(engine_.Facts().vocabulary()) - 1);
  prompt_.resize(max_length_ - 1);
  for (TokenId& id : prompt_) id = token(random);
  StepPlan plan;
  plan.starts.push_back(StartOf(kSource, max_length_ - 1));
  AppendBlocks(kSource, BlocksFor(max_length_), plan);
  plan.segments.push_back(PromptSegment(kSource, 0, block_size_, Segment::Logits::kNone));
  source_length_ = block_size_;
  return Step(plan).status();
}

std::uint32_t EngineDriver::BlocksFor(std::uint32_t tokens) const {
  return (tokens + block_size_ - 1) / block_size_;
}

SequenceStart EngineDriver::StartOf(std::uint32_t slot, std::uint32_t length) const {
  SequenceStart start;
  start.slot = SlotId(slot);
  start.sequence = SequenceId(slot + 1);
  start.prompt.assign(prompt_.begin(), prompt_.begin() + length);
  start.prompt_length = length;
  start.ignore_eos = true;
  return start;
}

// The source's blocks come first.
BlockId EngineDriver::BlockOf(std::uint32_t slot, std::uint32_t index) const {
  if (slot == kSource) return BlockId(index);
  return BlockId(BlocksFor(max_length_) + slot * blocks_per_row_ + index);
}

void EngineDriver::AppendBlocks(std::uint32_t slot, std::uint32_t count, StepPlan& plan) const {
  for (std::uint32_t i = 0; i < count; ++i) {
    BlockOp op;
    op.slot = SlotId(slot);
    op.dst = BlockOf(slot, i);
    plan.block_ops.push_back(op);
  }
}

absl::StatusOr<double> EngineDriver::Step(const StepPlan& plan) {
  const auto begin = Clock::now();
  PENSTOCK_ASSIGN_OR_RETURN(const StepResult result, engine_.Execute(plan));
  const double seconds = Since(begin);
  for (const SequenceResult& sequence : result.sequences) {
    if (sequence.finish == ShardFinish::kError) return absl::InternalError(sequence.error);
  }
  return seconds;
}

absl::Status EngineDriver::GrowSource(std::uint32_t length) {
  while (source_length_ < length) {
    const std::uint32_t count = std::min(kSourceChunk, length - source_length_);
    StepPlan plan;
    plan.segments.push_back(PromptSegment(kSource, source_length_, count, Segment::Logits::kNone));
    PENSTOCK_RETURN_IF_ERROR(Step(plan).status());
    source_length_ += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> EngineDriver::Decode(std::uint32_t rows, std::uint32_t context,
                                                         double seconds) {
  blocks_per_row_ = BlocksFor(context + kMaxSteps + 1);
  if (rows == 0 || rows > kMaxRows || context < 2 || context + kMaxSteps + 2 > max_length_ ||
      rows * blocks_per_row_ > BlocksFor(pool_tokens_)) {
    return absl::InvalidArgumentError("rows or context are beyond the pool");
  }
  PENSTOCK_RETURN_IF_ERROR(GrowSource(context));
  StepPlan begin;
  StepPlan decode;
  StepPlan end;
  for (std::uint32_t slot = 0; slot < rows; ++slot) {
    begin.starts.push_back(StartOf(slot, context));
    begin.starts.back().cached_length = context - 1;
    begin.starts.back().prompt.back() = prompt_[slot];  // rows differ, and so do their experts
    AppendBlocks(slot, blocks_per_row_, begin);
    for (std::uint32_t i = 0; i < BlocksFor(context); ++i) {
      BlockOp copy;
      copy.kind = BlockOp::Kind::kCopy;
      copy.slot = SlotId(slot);
      copy.src = BlockOf(kSource, i);
      copy.dst = BlockOf(slot, i);
      begin.block_ops.push_back(copy);
    }
    begin.segments.push_back(PromptSegment(slot, context - 1, 1, Segment::Logits::kLast));
    Segment segment;
    segment.slot = SlotId(slot);
    decode.segments.push_back(segment);
    end.ends.push_back(SlotId(slot));
  }
  PENSTOCK_RETURN_IF_ERROR(Step(begin).status());
  PENSTOCK_RETURN_IF_ERROR(Step(decode).status());  // warms up
  std::vector<double> times;
  const auto started = Clock::now();
  while (times.size() < 5 || (Since(started) < seconds && times.size() < kMaxSteps - 1)) {
    PENSTOCK_ASSIGN_OR_RETURN(const double time, Step(decode));
    times.push_back(time);
  }
  PENSTOCK_RETURN_IF_ERROR(Step(end).status());
  return times;
}

absl::StatusOr<std::vector<double>> EngineDriver::Prefill(std::uint32_t tokens, double seconds) {
  blocks_per_row_ = BlocksFor(tokens + 1);
  if (tokens == 0 || tokens > kMaxStepTokens || tokens > prompt_.size() ||
      blocks_per_row_ > BlocksFor(pool_tokens_)) {
    return absl::InvalidArgumentError("tokens are beyond the pool or the step");
  }
  StepPlan prompt;
  prompt.starts.push_back(StartOf(0, tokens));
  AppendBlocks(0, blocks_per_row_, prompt);
  prompt.segments.push_back(PromptSegment(0, 0, tokens, Segment::Logits::kLast));
  StepPlan end;
  end.ends.push_back(SlotId(0));
  std::vector<double> times;
  const auto started = Clock::now();
  while (times.size() < 2 || Since(started) < seconds) {
    PENSTOCK_ASSIGN_OR_RETURN(const double time, Step(prompt));
    times.push_back(time);
    PENSTOCK_RETURN_IF_ERROR(Step(end).status());
  }
  return times;
}

}  // namespace penstock::shard
