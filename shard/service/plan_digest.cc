#include "shard/service/plan_digest.h"

#include <bit>
#include <string>
#include <type_traits>

namespace penstock::shard {
namespace {

class Mixer {
 public:
  explicit Mixer(std::uint64_t state) : state_(state) {}

  Mixer& Add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15ULL;
    state_ ^= state_ >> 32;
    return *this;
  }
  Mixer& Add(float value) { return Add(std::uint64_t{std::bit_cast<std::uint32_t>(value)}); }
  Mixer& Add(const std::string& text) {
    Add(std::uint64_t{text.size()});
    for (char c : text) Add(std::uint64_t{static_cast<unsigned char>(c)});
    return *this;
  }
  Mixer& Add(const std::vector<TokenId>& tokens) {
    Add(std::uint64_t{tokens.size()});
    for (TokenId token : tokens) Add(static_cast<std::uint64_t>(token));
    return *this;
  }
  template <class Enum>
  requires std::is_enum_v<Enum> Mixer& Add(Enum value) {
    return Add(static_cast<std::uint64_t>(value));
  }
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

void MixSampling(Mixer& mix, const SamplingParams& params) {
  mix.Add(std::uint64_t{params.do_sample}).Add(params.temperature);
  mix.Add(std::uint64_t{params.top_k}).Add(params.top_p).Add(params.typical_p).Add(params.min_p);
  mix.Add(params.repetition_penalty).Add(params.frequency_penalty).Add(params.presence_penalty);
  mix.Add(params.seed).Add(std::uint64_t{params.sibling}).Add(params.penalty_alpha);
  mix.Add(std::uint64_t{params.watermark});
  mix.Add(std::uint64_t{params.logit_bias.size()});
  for (const auto& bias : params.logit_bias) {
    mix.Add(static_cast<std::uint64_t>(bias.token)).Add(bias.bias);
  }
}

void MixStart(Mixer& mix, const SequenceStart& start) {
  mix.Add(std::uint64_t{start.slot.value()}).Add(start.sequence.value()).Add(start.prompt);
  mix.Add(std::uint64_t{start.cached_length}).Add(std::uint64_t{start.sample_index_base});
  MixSampling(mix, start.sampling);
  mix.Add(start.logprobs.kind).Add(std::uint64_t{start.logprobs.top_n});
  mix.Add(std::uint64_t{start.logprobs.prompt_logprobs}).Add(start.stop_token_ids);
  mix.Add(std::uint64_t{start.ignore_eos}).Add(std::uint64_t{start.min_new_tokens});
  mix.Add(std::uint64_t{start.max_new_tokens}).Add(start.adapter_id);
  mix.Add(start.grammar.kind).Add(start.grammar.source);
}

void MixBlockOp(Mixer& mix, const BlockOp& op) {
  mix.Add(op.kind).Add(std::uint64_t{op.kv_group}).Add(std::uint64_t{op.slot.value()});
  mix.Add(std::uint64_t{op.src.value()}).Add(std::uint64_t{op.dst.value()});
}

void MixSegment(Mixer& mix, const Segment& segment) {
  mix.Add(segment.kind).Add(std::uint64_t{segment.slot.value()}).Add(segment.logits);
  mix.Add(std::uint64_t{segment.first}).Add(std::uint64_t{segment.count});
  mix.Add(std::uint64_t{segment.max_rows});
}

}  // namespace

void PlanDigest::Mix(const StepPlan& plan) {
  Mixer mix(state_);
  mix.Add(plan.epoch.value()).Add(plan.step.value());
  mix.Add(std::uint64_t{plan.ends.size()});
  for (SlotId slot : plan.ends) mix.Add(std::uint64_t{slot.value()});
  mix.Add(std::uint64_t{plan.starts.size()});
  for (const SequenceStart& start : plan.starts) MixStart(mix, start);
  mix.Add(std::uint64_t{plan.block_ops.size()});
  for (const BlockOp& op : plan.block_ops) MixBlockOp(mix, op);
  mix.Add(std::uint64_t{plan.segments.size()});
  for (const Segment& segment : plan.segments) MixSegment(mix, segment);
  mix.Add(std::uint64_t{plan.groups.size()});
  for (const SegmentGroup& group : plan.groups) {
    mix.Add(std::uint64_t{group.segments.size()});
    for (std::uint32_t index : group.segments) mix.Add(std::uint64_t{index});
    mix.Add(std::uint64_t{group.rows.size()}).Add(std::uint64_t{group.width});
    for (SlotId slot : group.rows) mix.Add(std::uint64_t{slot.value()});
  }
  state_ = mix.state();
}

void PlanDigest::Mix(const StepResult& result) {
  Mixer mix(state_);
  for (const SequenceResult& sequence : result.sequences) {
    mix.Add(std::uint64_t{sequence.slot.value()}).Add(sequence.sequence.value());
    mix.Add(std::uint64_t{sequence.committed_length}).Add(sequence.finish);
    for (const SampledToken& token : sequence.tokens) {
      mix.Add(static_cast<std::uint64_t>(token.token));
    }
  }
  state_ = mix.state();
}

}  // namespace penstock::shard
