#include "shard/service/group_session.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/log.h"
#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kMaxSlots = 65'536;
constexpr std::uint32_t kMaxStepTokens = 1u << 20;

// The driver talks to another shard than it expects.
absl::Status Mismatch(const char* field, const std::string& given, const std::string& mine) {
  return absl::FailedPreconditionError(Message(BadValue(field, given, mine + ", this shard's")));
}

absl::Status CheckRange(const char* field, std::uint32_t value, std::uint32_t low,
                        std::uint32_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return BadValue(field, std::to_string(value),
                  "from " + std::to_string(low) + " to " + std::to_string(high));
}

// The log of each rank tells to which trace or request a sequence belongs.
void LogStarts(const StepPlan& plan) {
  for (const SequenceStart& start : plan.starts) {
    if (start.trace_id.empty()) continue;
    log::Debug("step " + std::to_string(plan.step.value()) + " starts sequence " +
               std::to_string(start.sequence.value()) + " of " + start.trace_id);
  }
}

}  // namespace

absl::Status GroupSession::Configure(const GroupSetup& setup) {
  const EngineFacts facts = engine_.Facts();
  if (setup.fingerprint != facts.fingerprint) {
    return Mismatch("fingerprint", setup.fingerprint, facts.fingerprint);
  }
  if (setup.world_size != facts.world_size) {
    return Mismatch("world_size", std::to_string(setup.world_size),
                    std::to_string(facts.world_size));
  }
  if (setup.rank != facts.rank) {
    return Mismatch("rank", std::to_string(setup.rank), std::to_string(facts.rank));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckLimits(setup.limits));
  setup_ = setup;
  checker_.reset();
  return engine_.Configure(setup_);
}

absl::Status GroupSession::CheckLimits(const GroupLimits& limits) const {
  PENSTOCK_RETURN_IF_ERROR(
      CheckRange("limits.max_step_tokens", limits.max_step_tokens, 1, kMaxStepTokens));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("limits.max_sequences", limits.max_sequences, 1, kMaxSlots));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("limits.max_sequence_length", limits.max_sequence_length, 1,
                                      engine_.Facts().max_position));
  if (limits.max_candidates > 0) {
    const std::vector<std::string> offered = engine_.Facts().capabilities;
    if (std::find(offered.begin(), offered.end(), "contrastive_search") == offered.end()) {
      return BadValue("limits.max_candidates", std::to_string(limits.max_candidates),
                      "0: this shard was not started with --contrastive-search");
    }
    PENSTOCK_RETURN_IF_ERROR(
        CheckRange("limits.max_candidates", limits.max_candidates, 1, limits.max_step_tokens));
  }
  return CheckRange("limits.max_decode_rows", limits.max_decode_rows, 1, limits.max_step_tokens);
}

absl::StatusOr<WarmupReport> GroupSession::Warmup() {
  auto report = engine_.Warmup();
  if (report.ok()) fits_ = {report->blocks, report->cells};
  return report;
}

absl::StatusOr<std::uint64_t> GroupSession::Commit(const PoolSize& pool) {
  PENSTOCK_RETURN_IF_ERROR(CheckRange("blocks", pool.blocks, 1, fits_.blocks));
  const std::uint32_t least_cells = fits_.cells > 0 ? 1 : 0;
  PENSTOCK_RETURN_IF_ERROR(CheckRange("cells", pool.cells, least_cells, fits_.cells));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t bytes, engine_.Commit(pool));
  const EngineFacts facts = engine_.Facts();
  PlanBounds bounds;
  bounds.epoch = setup_.epoch;
  bounds.vocabulary = facts.vocabulary;
  bounds.slots = setup_.limits.max_sequences;
  bounds.blocks = pool.blocks;
  bounds.cells = pool.cells;
  bounds.block_size = facts.block_size;
  bounds.max_step_tokens = setup_.limits.max_step_tokens;
  bounds.max_sequence_length = setup_.limits.max_sequence_length;
  bounds.max_decode_rows = setup_.limits.max_decode_rows;
  bounds.max_candidates = setup_.limits.max_candidates;
  const auto offers = [&facts](std::string_view name) {
    return std::find(facts.capabilities.begin(), facts.capabilities.end(), name) !=
           facts.capabilities.end();
  };
  bounds.grammars = offers("grammar");
  bounds.watermarks = offers("watermark");
  bounds.kv_groups = static_cast<std::uint32_t>(facts.kv_groups.size());
  checker_.emplace(std::move(bounds));
  return bytes;
}

void GroupSession::OpenExecute() {
  engine_.Reset();
  pending_.clear();
  checked_ = false;
  checker_->Reset();
  digest_.Reset();
}

absl::StatusOr<StepResult> GroupSession::Step(const StepPlan& plan) {
  PENSTOCK_ASSIGN_OR_RETURN(StepResult result, StepWithTokens(plan));
  if (setup_.rank != 0) result.sequences.clear();
  return result;
}

absl::StatusOr<StepResult> GroupSession::StepWithTokens(const StepPlan& plan) {
  if (!std::exchange(checked_, false)) PENSTOCK_RETURN_IF_ERROR(checker_->Check(plan));
  LogStarts(plan);
  PENSTOCK_ASSIGN_OR_RETURN(StepResult result, engine_.Execute(plan));
  PENSTOCK_RETURN_IF_ERROR(checker_->Observe(plan, result));
  return Stamp(plan, std::move(result));
}

StepResult GroupSession::Stamp(const StepPlan& plan, StepResult result) {
  digest_.Mix(plan);
  digest_.Mix(result);
  result.epoch = plan.epoch;
  result.step = plan.step;
  result.digest = digest_.value();
  return result;
}

absl::StatusOr<bool> GroupSession::Begin(std::shared_ptr<const StepPlan> plan,
                                         std::function<void()> ready) {
  PENSTOCK_RETURN_IF_ERROR(checker_->Check(*plan));
  PENSTOCK_ASSIGN_OR_RETURN(const bool begun, engine_.Begin(*plan, std::move(ready)));
  checked_ = !begun;
  if (!begun) return false;
  LogStarts(*plan);
  checker_->Assume(*plan);
  pending_.push_back(std::move(plan));
  return true;
}

absl::StatusOr<StepResult> GroupSession::Collect() {
  PENSTOCK_ASSIGN_OR_RETURN(StepResult result, engine_.Collect());
  const std::shared_ptr<const StepPlan> plan = std::move(pending_.front());
  pending_.pop_front();
  PENSTOCK_RETURN_IF_ERROR(checker_->ObserveAssumed(*plan, result));
  result = Stamp(*plan, std::move(result));
  if (setup_.rank != 0) result.sequences.clear();
  return result;
}

void GroupSession::CloseExecute() {
  engine_.Reset();
  pending_.clear();
}

}  // namespace penstock::shard
