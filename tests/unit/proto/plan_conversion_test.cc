#include "proto/plan_conversion.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "common/status.h"
#include "penstock/v1/shard.pb.h"

namespace penstock::proto {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t Below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
  bool Coin() { return Below(2) == 1; }
  float Real() { return static_cast<float>(Below(1000)) / 500.0f - 1.0f; }
  template <class T>
  std::vector<T> List(std::uint32_t bound) {
    std::vector<T> list(Below(5));
    for (T& item : list) item = T(Below(bound));
    return list;
  }

 private:
  std::mt19937_64 engine_;
};

SequenceStart RandomStart(Draw& draw) {
  SequenceStart start;
  start.slot = SlotId(draw.Below(64));
  start.sequence = SequenceId(draw.Below(1000));
  start.prompt = draw.List<TokenId>(32000);
  start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
  start.cached_length = draw.Below(4);
  start.sample_index_base = draw.Below(9);
  start.sampling = {draw.Coin(),    draw.Real(),   draw.Below(50),    draw.Real(), draw.Real(),
                    draw.Real(),    draw.Real(),   draw.Real(),       draw.Real(), draw.Real(),
                    draw.Below(77), draw.Below(3), {{3, draw.Real()}}};
  start.sampling.bad_words = {draw.List<TokenId>(100), {7}};
  start.sampling.watermark = draw.Coin();
  start.sampling.penalty_alpha = draw.Real();
  start.logprobs = {static_cast<LogprobRequest::Kind>(draw.Below(3)), draw.Below(6), draw.Coin()};
  if (draw.Coin()) start.logprobs.prompt_top_n = draw.Below(3);
  start.stop_token_ids = draw.List<TokenId>(100);
  start.ignore_eos = draw.Coin();
  start.min_new_tokens = draw.Below(10);
  start.max_new_tokens = draw.Below(100);
  if (draw.Coin()) start.grammar = {GrammarSpec::Kind::kRegex, "[ab]+"};
  start.adapter_id = draw.Coin() ? "a" : "";
  start.trace_id = draw.Coin() ? "t" : "";
  return start;
}

StepPlan RandomPlan(Draw& draw) {
  StepPlan plan;
  plan.epoch = Epoch(draw.Below(9));
  plan.step = StepId(draw.Below(1000));
  plan.ends = draw.List<SlotId>(64);
  plan.block_ops = {{static_cast<BlockOp::Kind>(draw.Below(2)), draw.Below(2),
                     SlotId(draw.Below(9)), BlockId(draw.Below(99)), BlockId(draw.Below(99))}};
  plan.starts = {RandomStart(draw), RandomStart(draw)};
  Segment prompt{Segment::Kind::kPrompt,
                 SlotId(draw.Below(9)),
                 draw.Below(9),
                 draw.Below(99),
                 static_cast<Segment::Logits>(draw.Below(3)),
                 1};
  Segment decode;
  decode.slot = SlotId(draw.Below(9));
  decode.max_rows = 1 + draw.Below(4);
  plan.segments = {prompt, decode};
  plan.groups = {{draw.List<std::uint32_t>(2)}};
  return plan;
}

StepResult RandomResult(Draw& draw) {
  StepResult result;
  result.epoch = Epoch(draw.Below(9));
  result.step = StepId(draw.Below(1000));
  result.digest = draw.Below(1u << 30);
  SequenceResult sequence;
  sequence.slot = SlotId(draw.Below(9));
  sequence.sequence = SequenceId(draw.Below(99));
  sequence.tokens = {{5, draw.Real(), {{1, draw.Real()}, {2, draw.Real()}}}, {6, draw.Real(), {}}};
  sequence.committed_length = draw.Below(99);
  sequence.finish = static_cast<ShardFinish>(draw.Below(5));
  sequence.error = draw.Coin() ? "e" : "";
  sequence.prompt_logprobs = {draw.Real()};
  if (draw.Coin()) sequence.prompt_alternatives = {{3, {{1, draw.Real()}, {2, draw.Real()}}}};
  result.sequences = {sequence};
  result.timings = {Duration(draw.Below(99)), Duration(draw.Below(99)), Duration(draw.Below(99))};
  result.memory_bytes = draw.Below(1000);
  result.drafted = draw.Below(99);
  return result;
}

TEST(PlanConversion, RandomPlansSurviveTheWire) {
  v1::StepPlan wire;  // reused, as the router does
  v1::StepPlan received;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const StepPlan plan = RandomPlan(draw);
    ToProto(plan, wire);
    ASSERT_TRUE(received.ParseFromString(wire.SerializeAsString()));
    const auto back = FromProto(received);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, plan);
  }
}

TEST(PlanConversion, RandomResultsSurviveTheWire) {
  v1::StepResult wire;  // reused, as the shard does
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const StepResult result = RandomResult(draw);
    ToProto(result, wire);
    const auto back = FromProto(wire);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, result);
  }
}

TEST(PlanConversion, NamesTheFieldOfAnUnknownEnum) {
  v1::StepPlan wire;
  wire.add_block_ops()->set_kind(static_cast<v1::BlockOpKind>(99));
  const auto plan = FromProto(wire);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(Message(plan.status()),
            "`block_ops.kind` must be a known value of its enum. Given: 99");
}

TEST(PlanConversion, RefusesASegmentWithoutKind) {
  v1::StepPlan wire;
  wire.add_segments();
  EXPECT_EQ(FromProto(wire).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PlanConversion, RefusesUnequalParallelArrays) {
  v1::StepPlan plan;
  plan.add_starts()->mutable_sampling()->add_bias_tokens(1);
  EXPECT_FALSE(FromProto(plan).ok());
  v1::StepResult result;
  result.add_sequences()->add_tokens()->add_alternative_tokens(1);
  EXPECT_FALSE(FromProto(result).ok());
}

}  // namespace
}  // namespace penstock::proto
