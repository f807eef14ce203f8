#include "shard/service/group_session.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/fnv.h"
#include "common/log.h"
#include "common/status.h"
#include "proto/plan_conversion.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kMaxSlots = 65'536;
constexpr std::uint32_t kMaxStepTokens = 1u << 20;

// The driver talks to another shard than it expects.
absl::Status Mismatch(const char* field, const std::string& given, const std::string& mine) {
  return absl::FailedPreconditionError(Message(BadValue(field, given, mine + ", this shard's")));
}

absl::Status CheckRange(std::string_view field, std::uint32_t value, std::uint32_t low,
                        std::uint32_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return BadValue(field, std::to_string(value),
                  "from " + std::to_string(low) + " to " + std::to_string(high));
}

// Adds the plan and the control state of its result to the digest. Log-probabilities are left out,
// because only rank 0 has them.
std::uint64_t Mix(const StepPlan& plan, const StepResult& result, std::uint64_t digest) {
  StepResult control;
  for (const SequenceResult& sequence : result.sequences) {
    SequenceResult& one = control.sequences.emplace_back();
    one.slot = sequence.slot;
    one.sequence = sequence.sequence;
    one.committed_length = sequence.committed_length;
    one.finish = sequence.finish;
    for (const SampledToken& token : sequence.tokens) one.tokens.push_back({token.token, 0.0f, {}});
  }
  v1::StepPlan plan_wire;
  v1::StepResult result_wire;
  proto::ToProto(plan, plan_wire);
  proto::ToProto(control, result_wire);
  return Fnv1a(result_wire.SerializeAsString(), Fnv1a(plan_wire.SerializeAsString(), digest));
}

// The log of each rank tells to which trace or request a sequence belongs.
void LogStarts(const StepPlan& plan) {
  for (const SequenceStart& start : plan.starts) {
    if (start.trace_id.empty()) continue;
    log::Debug("step " + std::to_string(plan.step.value()) + " starts sequence " +
               std::to_string(start.sequence.value()) + " of " + start.trace_id);
  }
}

absl::Status CheckLimits(const v1::Limits& limits, const v1::DescribeResponse& facts) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckRange("limits.max_step_tokens", limits.max_step_tokens(), 1, kMaxStepTokens));
  PENSTOCK_RETURN_IF_ERROR(
      CheckRange("limits.max_sequences", limits.max_sequences(), 1, kMaxSlots));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("limits.max_sequence_length", limits.max_sequence_length(), 1,
                                      facts.max_position()));
  if (limits.max_candidates() > 0) {
    if (!Offers(facts, "contrastive_search")) {
      return BadValue("limits.max_candidates", std::to_string(limits.max_candidates()),
                      "0: this shard was not started with --contrastive-search");
    }
    PENSTOCK_RETURN_IF_ERROR(
        CheckRange("limits.max_candidates", limits.max_candidates(), 1, limits.max_step_tokens()));
  }
  return CheckRange("limits.max_decode_rows", limits.max_decode_rows(), 1,
                    limits.max_step_tokens());
}

}  // namespace

bool Offers(const v1::DescribeResponse& facts, std::string_view capability) {
  const auto& offered = facts.capabilities();
  return std::find(offered.begin(), offered.end(), capability) != offered.end();
}

absl::StatusOr<KvBlocks> BlocksOf(const google::protobuf::RepeatedField<std::uint32_t>& blocks) {
  if (blocks.size() == 1) return KvBlocks(blocks[0]);
  if (blocks.size() == kMostKvGroups) return KvBlocks(blocks[0], blocks[1]);
  return BadValue("blocks", std::to_string(blocks.size()) + " numbers",
                  "one for all KV groups, or one for each of two");
}

absl::Status GroupSession::Configure(const v1::ConfigureRequest& setup) {
  const v1::DescribeResponse facts = engine_.Facts();
  if (setup.fingerprint() != facts.fingerprint()) {
    return Mismatch("fingerprint", setup.fingerprint(), facts.fingerprint());
  }
  if (setup.world_size() != facts.world_size()) {
    return Mismatch("world_size", std::to_string(setup.world_size()),
                    std::to_string(facts.world_size()));
  }
  if (setup.rank() != facts.rank()) {
    return Mismatch("rank", std::to_string(setup.rank()), std::to_string(facts.rank()));
  }
  setup_ = setup;
  v1::Limits& limits = *setup_.mutable_limits();
  limits.set_max_decode_rows(std::max(1u, limits.max_decode_rows()));  // absent: no drafts
  PENSTOCK_RETURN_IF_ERROR(CheckLimits(limits, facts));
  checker_.reset();
  return engine_.Configure(setup_);
}

absl::StatusOr<v1::WarmupResponse> GroupSession::Warmup() {
  auto report = engine_.Warmup();
  if (!report.ok()) return report;
  PENSTOCK_ASSIGN_OR_RETURN(fits_.blocks, BlocksOf(report->blocks()));
  fits_.cells = report->cells();
  fits_.snapshots = report->snapshots();
  return report;
}

absl::StatusOr<std::uint64_t> GroupSession::Commit(const PoolSize& pool) {
  const v1::DescribeResponse facts = engine_.Facts();
  for (int i = 0; i < facts.kv_groups_size(); ++i) {
    const auto group = static_cast<std::uint32_t>(i);
    const std::string field = "blocks[" + std::to_string(i) + "]";
    PENSTOCK_RETURN_IF_ERROR(CheckRange(field, pool.blocks[group], 1, fits_.blocks[group]));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckRange("cells", pool.cells, std::min(1u, fits_.cells), fits_.cells));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("snapshots", pool.snapshots, 0, fits_.snapshots));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t bytes, engine_.Commit(pool));
  const v1::Limits& limits = setup_.limits();
  PlanBounds bounds;
  bounds.epoch = Epoch(setup_.epoch());
  bounds.vocabulary = facts.vocabulary();
  bounds.slots = limits.max_sequences();
  bounds.blocks = pool.blocks;
  bounds.cells = pool.cells;
  bounds.snapshots = pool.snapshots;
  bounds.block_size = facts.block_size();
  bounds.max_step_tokens = limits.max_step_tokens();
  bounds.max_sequence_length = limits.max_sequence_length();
  bounds.max_decode_rows = limits.max_decode_rows();
  bounds.max_candidates = limits.max_candidates();
  bounds.grammars = Offers(facts, "grammar");
  bounds.watermarks = Offers(facts, "watermark");
  bounds.prefixes = Offers(facts, "prefix_caching");
  if (limits.window_tables() && facts.kv_groups_size() > 1) {
    bounds.kv_groups = kMostKvGroups;
    bounds.window = facts.kv_groups(1).window();
  }
  bounds.adapters = Offers(facts, "adapters");
  checker_.emplace(bounds);
  return bytes;
}

void GroupSession::OpenExecute() {
  engine_.Reset();
  pending_.clear();
  checked_ = false;
  checker_->Reset();
  digest_ = kFnvStart;
}

absl::StatusOr<StepResult> GroupSession::Step(const StepPlan& plan) {
  PENSTOCK_ASSIGN_OR_RETURN(StepResult result, StepWithTokens(plan));
  if (setup_.rank() != 0) result.sequences.clear();
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
  digest_ = Mix(plan, result, digest_);
  result.epoch = plan.epoch;
  result.step = plan.step;
  result.digest = digest_;
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
  PENSTOCK_RETURN_IF_ERROR(checker_->Observe(*plan, result, true));
  result = Stamp(*plan, std::move(result));
  if (setup_.rank() != 0) result.sequences.clear();
  return result;
}

void GroupSession::CloseExecute() {
  engine_.Reset();
  pending_.clear();
}

absl::Status GroupSession::Embed(const v1::EmbedRequest& request, v1::EmbedResponse& response) {
  if (!checker_.has_value() || request.epoch() != setup_.epoch()) {
    return absl::FailedPreconditionError("Embed: the group of epoch " +
                                         std::to_string(request.epoch()) + " is not committed");
  }
  std::vector<EmbedText> texts;
  for (const v1::EmbedText& wire : request.texts()) {
    EmbedText& text = texts.emplace_back();
    text.tokens.assign(wire.tokens().begin(), wire.tokens().end());
    if (wire.has_first_part()) text.first_part = wire.first_part();
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto vectors, engine_.Embed(texts));
  if (setup_.rank() != 0) return absl::OkStatus();
  for (const std::vector<float>& vector : vectors) {
    response.add_vectors()->mutable_values()->Add(vector.begin(), vector.end());
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
