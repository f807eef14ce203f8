#include "proto/plan_wire.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "penstock/v1/shard.pb.h"
#include "proto/plan_conversion.h"

namespace penstock::proto {
namespace {

constexpr std::uint64_t kSeeds = 300;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  // Often small, sometimes anything.
  std::uint32_t Number() {
    const auto bits = engine_() % 33;
    return bits == 0 ? 0 : static_cast<std::uint32_t>(engine_()) >> (32 - bits);
  }
  std::uint32_t Below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
  bool Rarely() { return Below(8) == 0; }

 private:
  std::mt19937_64 engine_;
};

StepPlan RandomPlan(Draw& draw) {
  StepPlan plan;
  plan.epoch = Epoch(draw.Number());
  plan.step = StepId((std::uint64_t{draw.Number()} << 32) + draw.Number());
  for (std::uint32_t i = draw.Below(40); i > 0; --i) {
    Segment& segment = plan.segments.emplace_back();
    segment.slot = SlotId(draw.Number());
    if (draw.Below(2) == 0) {
      segment.max_rows = draw.Number();
    } else {
      segment.kind = Segment::Kind::kPrompt;
      segment.first = draw.Number();
      segment.count = draw.Number();
      segment.logits = static_cast<Segment::Logits>(draw.Below(3));
    }
  }
  if (draw.Rarely()) plan.ends = {SlotId(draw.Number())};
  if (draw.Rarely()) plan.truncates = {{SlotId(draw.Number()), draw.Number()}};
  if (draw.Rarely()) plan.block_ops.emplace_back().dst = BlockId(draw.Number());
  if (draw.Rarely()) plan.starts.emplace_back().prompt.assign(draw.Below(30'000), 7);
  if (draw.Rarely()) plan.append_tokens = {{SlotId(1), {1, 2}}};
  if (draw.Rarely()) plan.groups = {{{0, 1}, {SlotId(3)}, 16}};
  return plan;
}

StepResult RandomResult(Draw& draw) {
  StepResult result;
  result.epoch = Epoch(draw.Number());
  result.step = StepId(draw.Number());
  result.digest = (std::uint64_t{draw.Number()} << 32) + draw.Number();
  for (std::uint32_t i = draw.Below(40); i > 0; --i) {
    SequenceResult& sequence = result.sequences.emplace_back();
    sequence.slot = SlotId(draw.Number());
    sequence.sequence = SequenceId(draw.Number());
    for (std::uint32_t n = draw.Below(3); n > 0; --n) {
      sequence.tokens.push_back({static_cast<TokenId>(draw.Number()), -0.001f * draw.Below(9), {}});
    }
    sequence.committed_length = draw.Number();
    if (draw.Rarely()) sequence.finish = static_cast<ShardFinish>(draw.Below(5));
  }
  result.timings = {Duration(draw.Number()), Duration(draw.Number()), Duration(draw.Number())};
  result.memory_bytes = draw.Number();
  if (result.sequences.empty() || draw.Below(4) > 0) return result;
  SequenceResult& rare = result.sequences.back();
  if (draw.Rarely()) rare.error = "no such token";
  if (draw.Rarely()) rare.prompt_logprobs = {-1.5f};
  if (draw.Rarely()) rare.tokens.push_back({1, -0.5f, {{2, -0.75f}, {3, -1.0f}}});
  if (draw.Rarely()) result.done_tickets = {draw.Number()};
  if (draw.Rarely()) result.cells = {draw.Number(), draw.Number(), draw.Number()};
  return result;
}

std::string Serialized(const StepResult& result) {
  v1::StepResult wire;
  ToProto(result, wire);
  return wire.SerializeAsString();
}

TEST(PlanWire, AWriterWritesPlanAfterPlanAsTheMessagesRead) {
  PlanWriter writer;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const StepPlan plan = RandomPlan(draw);
    v1::StepPlan wire;
    ASSERT_TRUE(wire.ParseFromString(std::string(writer.Write(plan))));
    const auto back = FromProto(wire);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, plan);
  }
}

TEST(PlanWire, ResultsAreReadAsTheMessagesWriteThem) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const StepResult result = RandomResult(draw);
    const auto back = ReadResult(Serialized(result));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, result);
  }
}

// Cut and changed bytes: refused where the messages refuse them, else the same result.
TEST(PlanWire, BrokenResultsAreRefusedAsTheMessagesRefuseThem) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    std::string bytes = Serialized(RandomResult(draw));
    if (bytes.empty()) continue;
    if (draw.Below(2) == 0) bytes.resize(draw.Below(static_cast<std::uint32_t>(bytes.size())));
    for (std::uint32_t n = draw.Below(3); n > 0 && !bytes.empty(); --n) {
      bytes[draw.Below(static_cast<std::uint32_t>(bytes.size()))] =
          static_cast<char>(draw.Number());
    }
    v1::StepResult wire;
    const bool parsed = wire.ParseFromString(bytes);
    const auto back = ReadResult(bytes);
    if (!parsed) {
      EXPECT_FALSE(back.ok());
    } else if (const auto expected = FromProto(wire); expected.ok()) {
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(Serialized(*back), Serialized(*expected));  // a NaN equals itself there
    } else {
      EXPECT_FALSE(back.ok());
    }
  }
}

}  // namespace
}  // namespace penstock::proto
