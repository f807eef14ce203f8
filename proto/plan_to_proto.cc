#include "penstock/v1/shard.pb.h"
#include "proto/plan_conversion.h"

namespace penstock::proto {
namespace {

v1::BlockOpKind ToProto(BlockOp::Kind kind) {
  switch (kind) {
    case BlockOp::Kind::kAppend:
      return v1::BLOCK_OP_KIND_APPEND;
    case BlockOp::Kind::kCopy:
      return v1::BLOCK_OP_KIND_COPY;
    case BlockOp::Kind::kSaveState:
      return v1::BLOCK_OP_KIND_SAVE_STATE;
    case BlockOp::Kind::kRestoreState:
      return v1::BLOCK_OP_KIND_RESTORE_STATE;
  }
  return v1::BLOCK_OP_KIND_UNSPECIFIED;
}

void ToProto(const BlockOp& op, v1::BlockOp& wire) {
  wire.set_kind(ToProto(op.kind));
  wire.set_kv_group(op.kv_group);
  wire.set_slot(op.slot.value());
  wire.set_src(op.src.value());
  wire.set_dst(op.dst.value());
}

void ToProto(const SamplingParams& from, v1::Sampling& wire) {
  wire.set_do_sample(from.do_sample);
  wire.set_temperature(from.temperature);
  wire.set_top_k(from.top_k);
  wire.set_top_p(from.top_p);
  wire.set_typical_p(from.typical_p);
  wire.set_min_p(from.min_p);
  wire.set_repetition_penalty(from.repetition_penalty);
  wire.set_frequency_penalty(from.frequency_penalty);
  wire.set_presence_penalty(from.presence_penalty);
  wire.set_seed(from.seed);
  wire.set_sibling(from.sibling);
  for (const auto& bias : from.logit_bias) {
    wire.add_bias_tokens(bias.token);
    wire.add_bias_values(bias.bias);
  }
  wire.set_penalty_alpha(from.penalty_alpha);
  wire.set_watermark(from.watermark);
  wire.set_top_n_sigma(from.top_n_sigma);
  for (const std::vector<TokenId>& word : from.bad_words) {
    wire.add_bad_words()->mutable_ids()->Add(word.begin(), word.end());
  }
}

v1::LogprobKind ToProto(LogprobRequest::Kind kind) {
  switch (kind) {
    case LogprobRequest::Kind::kNone:
      return v1::LOGPROB_KIND_NONE;
    case LogprobRequest::Kind::kRaw:
      return v1::LOGPROB_KIND_RAW;
    case LogprobRequest::Kind::kProcessed:
      return v1::LOGPROB_KIND_PROCESSED;
  }
  return v1::LOGPROB_KIND_NONE;
}

void ToProto(const GrammarSpec& from, v1::Grammar& wire) {
  wire.set_kind(static_cast<v1::GrammarKind>(from.kind));
  wire.set_source(from.source);
}

void ToProto(const SequenceStart& start, v1::SequenceStart& wire) {
  wire.set_slot(start.slot.value());
  wire.set_sequence(start.sequence.value());
  wire.mutable_prompt()->Add(start.prompt.begin(), start.prompt.end());
  wire.set_prompt_length(start.prompt_length);
  wire.set_cached_length(start.cached_length);
  wire.set_sample_index_base(start.sample_index_base);
  ToProto(start.sampling, *wire.mutable_sampling());
  wire.mutable_logprobs()->set_kind(ToProto(start.logprobs.kind));
  wire.mutable_logprobs()->set_top_n(start.logprobs.top_n);
  wire.mutable_logprobs()->set_prompt(start.logprobs.prompt_logprobs);
  if (const auto top_n = start.logprobs.prompt_top_n) {
    wire.mutable_logprobs()->set_prompt_top_n(*top_n);
  }
  wire.mutable_stop_token_ids()->Add(start.stop_token_ids.begin(), start.stop_token_ids.end());
  wire.set_ignore_eos(start.ignore_eos);
  wire.set_min_new_tokens(start.min_new_tokens);
  wire.set_max_new_tokens(start.max_new_tokens);
  if (!start.grammar.empty()) ToProto(start.grammar, *wire.mutable_grammar());
  wire.set_adapter_id(start.adapter_id);
  wire.set_trace_id(start.trace_id);
}

v1::LogitsWanted ToProto(Segment::Logits logits) {
  switch (logits) {
    case Segment::Logits::kNone:
      return v1::LOGITS_WANTED_NONE;
    case Segment::Logits::kLast:
      return v1::LOGITS_WANTED_LAST;
    case Segment::Logits::kAll:
      return v1::LOGITS_WANTED_ALL;
  }
  return v1::LOGITS_WANTED_NONE;
}

void ToProto(const Segment& segment, v1::Segment& wire) {
  if (segment.kind == Segment::Kind::kDecode) {
    wire.mutable_decode()->set_slot(segment.slot.value());
    wire.mutable_decode()->set_max_rows(segment.max_rows);
    return;
  }
  v1::PromptSegment& prompt = *wire.mutable_prompt();
  prompt.set_slot(segment.slot.value());
  prompt.set_first(segment.first);
  prompt.set_count(segment.count);
  prompt.set_logits(ToProto(segment.logits));
}

v1::Finish ToProto(ShardFinish finish) {
  switch (finish) {
    case ShardFinish::kNone:
      return v1::FINISH_NONE;
    case ShardFinish::kEos:
      return v1::FINISH_EOS;
    case ShardFinish::kLength:
      return v1::FINISH_LENGTH;
    case ShardFinish::kStopToken:
      return v1::FINISH_STOP_TOKEN;
    case ShardFinish::kError:
      return v1::FINISH_ERROR;
  }
  return v1::FINISH_NONE;
}

void ToProto(const SequenceResult& sequence, v1::SequenceResult& wire) {
  wire.set_slot(sequence.slot.value());
  wire.set_sequence(sequence.sequence.value());
  for (const SampledToken& sampled : sequence.tokens) {
    v1::SampledToken& token = *wire.add_tokens();
    token.set_token(sampled.token);
    token.set_logprob(sampled.logprob);
    token.set_forced(sampled.forced);
    for (const TokenLogprob& alternative : sampled.alternatives) {
      token.add_alternative_tokens(alternative.token);
      token.add_alternative_logprobs(alternative.logprob);
    }
  }
  wire.set_committed_length(sequence.committed_length);
  wire.set_finish(ToProto(sequence.finish));
  wire.set_error(sequence.error);
  wire.mutable_prompt_logprobs()->Add(sequence.prompt_logprobs.begin(),
                                      sequence.prompt_logprobs.end());
  for (const PromptAlternatives& position : sequence.prompt_alternatives) {
    v1::PromptAlternatives& out = *wire.add_prompt_alternatives();
    out.set_rank(position.rank);
    for (const TokenLogprob& token : position.top) {
      out.add_tokens(token.token);
      out.add_logprobs(token.logprob);
    }
  }
}

}  // namespace

void ToProto(const StepPlan& plan, v1::StepPlan& wire) {
  wire.Clear();
  wire.set_epoch(plan.epoch.value());
  wire.set_step(plan.step.value());
  for (SlotId slot : plan.ends) wire.add_ends(slot.value());
  for (const BlockOp& op : plan.block_ops) ToProto(op, *wire.add_block_ops());
  for (const SequenceStart& start : plan.starts) ToProto(start, *wire.add_starts());
  for (const Segment& segment : plan.segments) ToProto(segment, *wire.add_segments());
  for (const SegmentGroup& group : plan.groups) {
    v1::SegmentGroup& out = *wire.add_groups();
    out.mutable_segments()->Add(group.segments.begin(), group.segments.end());
    for (const SlotId slot : group.rows) out.add_rows(slot.value());
    out.set_width(group.width);
  }
}

void ToProto(const StepResult& result, v1::StepResult& wire) {
  wire.Clear();
  wire.set_epoch(result.epoch.value());
  wire.set_step(result.step.value());
  wire.set_digest(result.digest);
  for (const SequenceResult& sequence : result.sequences) ToProto(sequence, *wire.add_sequences());
  wire.mutable_timings()->set_queued_ns(static_cast<std::uint64_t>(result.timings.queued.count()));
  wire.mutable_timings()->set_forward_ns(
      static_cast<std::uint64_t>(result.timings.forward.count()));
  wire.mutable_timings()->set_sample_ns(static_cast<std::uint64_t>(result.timings.sample.count()));
  wire.set_memory_bytes(result.memory_bytes);
  wire.set_drafted(result.drafted);
  wire.set_late_masks(result.late_masks);
  if (result.cells == CellUse{}) return;
  wire.mutable_cells()->set_allocated(result.cells.allocated);
  wire.mutable_cells()->set_filled(result.cells.filled);
  wire.mutable_cells()->set_copied(result.cells.copied);
}

}  // namespace penstock::proto
