#include "shard/executor/warmup.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/shard/executor/fake_backend.h"

namespace penstock::shard {
namespace {

WarmupShape Shape() {
  WarmupShape shape;
  shape.max_step_tokens = 16;
  shape.max_sequences = 6;
  shape.max_sequence_length = 40;
  shape.block_size = 8;
  shape.max_logit_rows = 4;
  shape.pool_tokens = 6 * 20;
  return shape;
}

// Whether some batch had `segments` sequences of `rows` rows after `context` positions.
bool Ran(const FakeBackend& backend, std::size_t segments, std::uint32_t rows,
         std::uint32_t context) {
  return std::any_of(backend.batches.begin(), backend.batches.end(), [&](const auto& batch) {
    return batch.segments.size() == segments && batch.segments[0].query_count == rows &&
           batch.segments[0].context_length == context;
  });
}

TEST(Warmup, RunsTheWorstPrefillAndTheWorstDecode) {
  FakeBackend backend(10);
  const auto samples = RunWarmup(Shape(), backend, [] { return true; });
  ASSERT_TRUE(samples.ok());
  EXPECT_EQ(backend.cache_blocks, 5u);
  EXPECT_TRUE(Ran(backend, 1, 16, 24)) << "a full step at the end of the longest sequence";
  EXPECT_TRUE(Ran(backend, 6, 1, 19)) << "all sequences, as long as the pool lets them be";
  EXPECT_EQ(*std::max_element(backend.logit_calls.begin(), backend.logit_calls.end()), 4u);
  for (const StepTimeSample& sample : *samples) EXPECT_GT(sample.time.count(), 0);
  const auto decode = std::find_if(samples->begin(), samples->end(), [](const auto& sample) {
    return sample.decode_rows == 6 && sample.context_tokens == 19;
  });
  EXPECT_NE(decode, samples->end());
  EXPECT_EQ(samples->front().prefill_tokens, 16u);
}

TEST(Warmup, StaysWithinTheSmallestLimits) {
  FakeBackend backend(10);
  WarmupShape shape = Shape();
  shape.max_step_tokens = 1;
  shape.max_sequences = 1;
  shape.max_sequence_length = 1;
  shape.pool_tokens = 8;
  EXPECT_TRUE(RunWarmup(shape, backend, [] { return true; }).ok());
}

TEST(Warmup, EndsWhenItIsInterrupted) {
  FakeBackend backend(10);
  int asked = 0;
  const auto samples = RunWarmup(Shape(), backend, [&asked] { return ++asked < 3; });
  EXPECT_TRUE(absl::IsCancelled(samples.status()));
  EXPECT_EQ(backend.batches.size(), 2u);
}

TEST(Warmup, GivesTheBackendsError) {
  FakeBackend backend(10);
  backend.execute_status = absl::ResourceExhaustedError("no memory");
  EXPECT_TRUE(absl::IsResourceExhausted(RunWarmup(Shape(), backend, [] { return true; }).status()));
}

}  // namespace
}  // namespace penstock::shard
