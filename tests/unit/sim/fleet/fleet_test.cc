#include "sim/fleet/fleet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/fleet/summary.h"
#include "sim/trace/shape_trace.h"

namespace penstock::sim {
namespace {

using scheduler::Batching;
using scheduler::StepShape;
using std::chrono::milliseconds;

// 1 ms per step and 1 µs per row: easy to add up.
Duration SimpleTime(const StepShape& shape) {
  return milliseconds(1) + Duration(1000 * shape.Tokens());
}

FleetOptions Options() {
  FleetOptions options;
  options.capacity = {.blocks = 4096,
                      .block_size = 16,
                      .slots = 256,
                      .max_sequence_length = 65536,
                      .max_step_tokens = 8192};
  options.config.pipeline_depth = 1;
  options.config.max_waiting_requests = 100000;
  options.step_time = SimpleTime;
  return options;
}

FleetResult Replay(const Trace& trace, const FleetOptions& options) {
  auto result = RunFleet(trace, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : FleetResult{};
}

Trace One(std::uint32_t prompt, std::uint32_t output) {
  return UniformTrace(1, {prompt, prompt}, {output, output}, 1);
}

TEST(Fleet, ALoneRequestTakesItsPrefillAndOneStepPerFurtherToken) {
  const FleetResult result = Replay(One(100, 5), Options());
  ASSERT_EQ(result.requests.size(), 1u);
  const RequestRecord& record = result.requests[0];
  EXPECT_EQ(record.first_token, milliseconds(1) + Duration(100'000));
  EXPECT_EQ(record.end, *record.first_token + 4 * Duration(1'001'000));
  EXPECT_EQ(record.worst_gap, Duration(1'001'000));
  EXPECT_EQ(record.output_tokens, 5u);
  EXPECT_EQ(result.computed_tokens[0], 100u);
}

TEST(Fleet, EveryRequestOfATraceIsAnsweredInFullLength) {
  Trace trace = UniformTrace(500, {10, 300}, {1, 60}, 3);
  ArriveAtRate(trace, 100, 4);
  const FleetResult result = Replay(trace, Options());
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    ASSERT_TRUE(result.requests[i].ok()) << "request " << i;
    ASSERT_EQ(result.requests[i].output_tokens, trace.requests[i].output_tokens);
  }
  EXPECT_GT(result.most_decode_rows, 1u);
}

TEST(Fleet, ATrueLengthBelowTheDeclaredOneEndsLikeAStopString) {
  FleetOptions options = Options();
  options.declared_output = 50;
  options.config.pipeline_depth = 2;
  const FleetResult result = Replay(One(100, 5), options);
  EXPECT_EQ(result.requests[0].output_tokens, 5u);
}

TEST(Fleet, PaddedBatchesAnswerTogetherAndComputeEndedRows) {
  Trace trace = UniformTrace(2, {10, 10}, {2, 2}, 1);
  trace.requests[1].output_tokens = 11;
  FleetOptions options = Options();
  options.config.batching = Batching::kStatic;
  options.config.max_batch_size = 2;
  options.padded_batches = true;
  // The first arrival is planned alone, so that the other two share the next batch.
  trace.requests.insert(trace.requests.begin(), trace.requests[0]);
  trace.requests[0].output_tokens = 1;
  const FleetResult result = Replay(trace, options);
  EXPECT_EQ(result.requests[1].end, result.requests[2].end);
  // One decode step has two rows, the nine after it would have one each.
  const Duration prefill = *result.requests[1].first_token;
  EXPECT_EQ(*result.requests[2].end - prefill, 10 * Duration(1'002'000));
}

TEST(Fleet, GroupsShareTheLoad) {
  Trace trace = UniformTrace(400, {100, 100}, {20, 20}, 3);
  ArriveAtRate(trace, 400, 4);
  FleetOptions options = Options();
  options.groups = 4;
  const Summary summary = Summarise(Replay(trace, options), {});
  EXPECT_EQ(summary.failed, 0u);
  EXPECT_LT(summary.imbalance, 1.2);
}

TEST(Fleet, ARefusedRequestCountsAsFailed) {
  Trace trace = One(100, 5);
  trace.requests[0].prompt_tokens = 70000;
  const FleetResult result = Replay(trace, Options());
  EXPECT_FALSE(result.requests[0].ok());
  EXPECT_NE(result.first_error.find("65536"), std::string::npos) << result.first_error;
  EXPECT_EQ(Summarise(result, {}).failed, 1u);
}

TEST(Fleet, BadSettingsAreAnError) {
  FleetOptions options = Options();
  options.config.max_step_tokens = 0;
  EXPECT_FALSE(RunFleet(One(1, 1), options).ok());
  options = Options();
  options.padded_batches = true;
  EXPECT_FALSE(RunFleet(One(1, 1), options).ok());
}

}  // namespace
}  // namespace penstock::sim
