#include <string>

#include "common/status.h"
#include "penstock/v1/shard.pb.h"
#include "proto/plan_conversion.h"

namespace penstock::proto {
namespace {

absl::Status UnknownEnum(std::string_view field, int value) {
  return BadValue(field, std::to_string(value), "a known value of its enum");
}

absl::StatusOr<BlockOp::Kind> FromProto(v1::BlockOpKind kind) {
  switch (kind) {
    case v1::BLOCK_OP_KIND_APPEND:
      return BlockOp::Kind::kAppend;
    case v1::BLOCK_OP_KIND_COPY:
      return BlockOp::Kind::kCopy;
    case v1::BLOCK_OP_KIND_SAVE_STATE:
      return BlockOp::Kind::kSaveState;
    case v1::BLOCK_OP_KIND_RESTORE_STATE:
      return BlockOp::Kind::kRestoreState;
    default:
      return UnknownEnum("block_ops.kind", kind);
  }
}

absl::StatusOr<BlockOp> FromProto(const v1::BlockOp& wire) {
  BlockOp op;
  PENSTOCK_ASSIGN_OR_RETURN(op.kind, FromProto(wire.kind()));
  op.kv_group = wire.kv_group();
  op.slot = SlotId(wire.slot());
  op.src = BlockId(wire.src());
  op.dst = BlockId(wire.dst());
  return op;
}

absl::StatusOr<SamplingParams> FromProto(const v1::Sampling& wire) {
  if (wire.bias_tokens_size() != wire.bias_values_size()) {
    return BadValue("starts.sampling.bias_values", std::to_string(wire.bias_values_size()),
                    "as many as bias_tokens (" + std::to_string(wire.bias_tokens_size()) + ")");
  }
  SamplingParams to;
  to.do_sample = wire.do_sample();
  to.temperature = wire.temperature();
  to.top_k = wire.top_k();
  to.top_p = wire.top_p();
  to.typical_p = wire.typical_p();
  to.min_p = wire.min_p();
  to.repetition_penalty = wire.repetition_penalty();
  to.frequency_penalty = wire.frequency_penalty();
  to.presence_penalty = wire.presence_penalty();
  to.seed = wire.seed();
  to.sibling = wire.sibling();
  for (int i = 0; i < wire.bias_tokens_size(); ++i) {
    to.logit_bias.push_back({wire.bias_tokens(i), wire.bias_values(i)});
  }
  to.penalty_alpha = wire.penalty_alpha();
  to.watermark = wire.watermark();
  to.top_n_sigma = wire.top_n_sigma();
  for (const v1::TokenIds& word : wire.bad_words()) {
    to.bad_words.emplace_back(word.ids().begin(), word.ids().end());
  }
  return to;
}

absl::StatusOr<LogprobRequest> FromProto(const v1::Logprobs& wire) {
  LogprobRequest to;
  switch (wire.kind()) {
    case v1::LOGPROB_KIND_NONE:
      to.kind = LogprobRequest::Kind::kNone;
      break;
    case v1::LOGPROB_KIND_RAW:
      to.kind = LogprobRequest::Kind::kRaw;
      break;
    case v1::LOGPROB_KIND_PROCESSED:
      to.kind = LogprobRequest::Kind::kProcessed;
      break;
    default:
      return UnknownEnum("starts.logprobs.kind", wire.kind());
  }
  to.top_n = wire.top_n();
  to.prompt_logprobs = wire.prompt();
  if (wire.has_prompt_top_n()) to.prompt_top_n = wire.prompt_top_n();
  return to;
}

absl::StatusOr<GrammarSpec> FromProto(const v1::Grammar& wire) {
  if (!v1::GrammarKind_IsValid(wire.kind())) {
    return UnknownEnum("starts.grammar.kind", wire.kind());
  }
  return GrammarSpec{static_cast<GrammarSpec::Kind>(wire.kind()), wire.source()};
}

absl::StatusOr<SequenceStart> FromProto(const v1::SequenceStart& wire) {
  SequenceStart start;
  start.slot = SlotId(wire.slot());
  start.sequence = SequenceId(wire.sequence());
  start.prompt.assign(wire.prompt().begin(), wire.prompt().end());
  start.prompt_length = wire.prompt_length();
  start.cached_length = wire.cached_length();
  start.sample_index_base = wire.sample_index_base();
  PENSTOCK_ASSIGN_OR_RETURN(start.sampling, FromProto(wire.sampling()));
  PENSTOCK_ASSIGN_OR_RETURN(start.logprobs, FromProto(wire.logprobs()));
  start.stop_token_ids.assign(wire.stop_token_ids().begin(), wire.stop_token_ids().end());
  start.ignore_eos = wire.ignore_eos();
  start.min_new_tokens = wire.min_new_tokens();
  start.max_new_tokens = wire.max_new_tokens();
  PENSTOCK_ASSIGN_OR_RETURN(start.grammar, FromProto(wire.grammar()));
  start.adapter_id = wire.adapter_id();
  start.trace_id = wire.trace_id();
  return start;
}

absl::StatusOr<Segment> FromProto(const v1::Segment& wire) {
  Segment segment;
  if (wire.has_decode()) {
    segment.slot = SlotId(wire.decode().slot());
    segment.max_rows = wire.decode().max_rows();
    return segment;
  }
  if (!wire.has_prompt()) return BadValue("segments.what", "absent", "prompt or decode");
  segment.kind = Segment::Kind::kPrompt;
  segment.slot = SlotId(wire.prompt().slot());
  segment.first = wire.prompt().first();
  segment.count = wire.prompt().count();
  switch (wire.prompt().logits()) {
    case v1::LOGITS_WANTED_NONE:
      segment.logits = Segment::Logits::kNone;
      break;
    case v1::LOGITS_WANTED_LAST:
      segment.logits = Segment::Logits::kLast;
      break;
    case v1::LOGITS_WANTED_ALL:
      segment.logits = Segment::Logits::kAll;
      break;
    default:
      return UnknownEnum("segments.prompt.logits", wire.prompt().logits());
  }
  return segment;
}

absl::StatusOr<ShardFinish> FromProto(v1::Finish finish) {
  switch (finish) {
    case v1::FINISH_NONE:
      return ShardFinish::kNone;
    case v1::FINISH_EOS:
      return ShardFinish::kEos;
    case v1::FINISH_LENGTH:
      return ShardFinish::kLength;
    case v1::FINISH_STOP_TOKEN:
      return ShardFinish::kStopToken;
    case v1::FINISH_ERROR:
      return ShardFinish::kError;
    default:
      return UnknownEnum("sequences.finish", finish);
  }
}

// Fills an element of a list in place, because this happens for every token.
absl::Status Read(const v1::SampledToken& wire, SampledToken& sampled) {
  if (wire.alternative_tokens_size() != wire.alternative_logprobs_size()) {
    return BadValue("sequences.tokens.alternative_logprobs",
                    std::to_string(wire.alternative_logprobs_size()),
                    "as many as alternative_tokens");
  }
  sampled.token = wire.token();
  sampled.logprob = wire.logprob();
  sampled.forced = wire.forced();
  sampled.alternatives.reserve(static_cast<std::size_t>(wire.alternative_tokens_size()));
  for (int i = 0; i < wire.alternative_tokens_size(); ++i) {
    sampled.alternatives.push_back({wire.alternative_tokens(i), wire.alternative_logprobs(i)});
  }
  return absl::OkStatus();
}

absl::Status Read(const v1::PromptAlternatives& wire, PromptAlternatives& out) {
  if (wire.tokens_size() != wire.logprobs_size()) {
    return BadValue("sequences.prompt_alternatives.logprobs", std::to_string(wire.logprobs_size()),
                    "as many as tokens");
  }
  out.rank = wire.rank();
  for (int i = 0; i < wire.tokens_size(); ++i) {
    out.top.push_back({wire.tokens(i), wire.logprobs(i)});
  }
  return absl::OkStatus();
}

absl::Status Read(const v1::SequenceResult& wire, SequenceResult& sequence) {
  sequence.slot = SlotId(wire.slot());
  sequence.sequence = SequenceId(wire.sequence());
  sequence.tokens.reserve(static_cast<std::size_t>(wire.tokens_size()));
  for (const v1::SampledToken& token : wire.tokens()) {
    PENSTOCK_RETURN_IF_ERROR(Read(token, sequence.tokens.emplace_back()));
  }
  sequence.committed_length = wire.committed_length();
  PENSTOCK_ASSIGN_OR_RETURN(sequence.finish, FromProto(wire.finish()));
  sequence.error = wire.error();
  sequence.prompt_logprobs.assign(wire.prompt_logprobs().begin(), wire.prompt_logprobs().end());
  for (const v1::PromptAlternatives& position : wire.prompt_alternatives()) {
    PENSTOCK_RETURN_IF_ERROR(Read(position, sequence.prompt_alternatives.emplace_back()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StepPlan> FromProto(const v1::StepPlan& wire) {
  StepPlan plan;
  plan.epoch = Epoch(wire.epoch());
  plan.step = StepId(wire.step());
  for (std::uint32_t slot : wire.ends()) plan.ends.push_back(SlotId(slot));
  for (const v1::BlockOp& op : wire.block_ops()) {
    PENSTOCK_ASSIGN_OR_RETURN(BlockOp value, FromProto(op));
    plan.block_ops.push_back(value);
  }
  for (const v1::SequenceStart& start : wire.starts()) {
    PENSTOCK_ASSIGN_OR_RETURN(SequenceStart value, FromProto(start));
    plan.starts.push_back(std::move(value));
  }
  for (const v1::Segment& segment : wire.segments()) {
    PENSTOCK_ASSIGN_OR_RETURN(Segment value, FromProto(segment));
    plan.segments.push_back(value);
  }
  for (const v1::SegmentGroup& group : wire.groups()) {
    SegmentGroup& value = plan.groups.emplace_back();
    value.segments.assign(group.segments().begin(), group.segments().end());
    for (const std::uint32_t slot : group.rows()) value.rows.emplace_back(slot);
    value.width = group.width();
  }
  return plan;
}

absl::StatusOr<StepResult> FromProto(const v1::StepResult& wire) {
  StepResult result;
  result.epoch = Epoch(wire.epoch());
  result.step = StepId(wire.step());
  result.digest = wire.digest();
  result.sequences.reserve(static_cast<std::size_t>(wire.sequences_size()));
  for (const v1::SequenceResult& sequence : wire.sequences()) {
    PENSTOCK_RETURN_IF_ERROR(Read(sequence, result.sequences.emplace_back()));
  }
  result.timings.queued = Duration(wire.timings().queued_ns());
  result.timings.forward = Duration(wire.timings().forward_ns());
  result.timings.sample = Duration(wire.timings().sample_ns());
  result.memory_bytes = wire.memory_bytes();
  result.drafted = wire.drafted();
  result.late_masks = wire.late_masks();
  result.cells = {wire.cells().allocated(), wire.cells().filled(), wire.cells().copied()};
  return result;
}

}  // namespace penstock::proto
