#include "shard/executor/warmup.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "shard/backend/device_sampler.h"
#include "shard/executor/warmup_sweep.h"
#include "shard/sampling/sampler.h"
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

WarmupControl Always() {
  return {[] { return true; }, [](bool mine) -> absl::StatusOr<bool> { return mine; }};
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
  const auto samples = RunWarmup(Shape(), backend, Always());
  ASSERT_TRUE(samples.ok());
  EXPECT_EQ(backend.cache_blocks, 5u);
  EXPECT_TRUE(Ran(backend, 1, 16, 24)) << "a full step at the end of the longest sequence";
  EXPECT_TRUE(Ran(backend, 6, 1, 19)) << "all sequences, as long as the pool allows";
  EXPECT_EQ(*std::max_element(backend.logit_calls.begin(), backend.logit_calls.end()), 4u);
  for (const StepTimeSample& sample : *samples) EXPECT_GT(sample.time.count(), 0);
  const auto decode = std::find_if(samples->begin(), samples->end(), [](const auto& sample) {
    return sample.decode_rows == 6 && sample.context_tokens == 19;
  });
  EXPECT_NE(decode, samples->end());
  EXPECT_TRUE(std::any_of(samples->begin(), samples->end(),
                          [](const auto& sample) { return sample.prefill_tokens == 16; }));
}

// Samples up to `most` rows of a step.
class SamplingBackend final : public FakeBackend, public DeviceSampler {
 public:
  explicit SamplingBackend(std::size_t most) : FakeBackend(10), most_(most) {}

  bool CanSample(std::span<const SampleRequest> requests) const override {
    return requests.size() <= most_;
  }
  absl::Status Sample(std::uint32_t, std::span<const SampleRequest>,
                      std::span<DeviceToken>) override {
    return absl::InternalError("not as served");
  }
  absl::Status BeginStep(const RaggedBatch& batch, std::span<const std::int32_t> newest,
                         std::span<const SampleRequest> requests, std::function<void()>) override {
    EXPECT_EQ(requests.size(), batch.logit_rows.size());
    EXPECT_EQ(newest.size(), batch.tokens.size());
    ++begun;
    return Execute(batch);
  }
  absl::Status EndStep(std::span<DeviceToken>) override {
    ++ended;
    return absl::OkStatus();
  }

  std::size_t begun = 0;
  std::size_t ended = 0;

 private:
  const std::size_t most_;
};

TEST(Warmup, TimesStepsAsTheyAreServed) {
  SamplingBackend all(6);
  ASSERT_TRUE(RunWarmup(Shape(), all, Always()).ok());
  EXPECT_GT(all.begun, 0u);
  EXPECT_EQ(all.begun, all.batches.size());
  EXPECT_EQ(all.ended, all.begun);
  EXPECT_TRUE(all.logit_calls.empty()) << "the device samples, so no logits come to the host";
  SamplingBackend few(2);
  ASSERT_TRUE(RunWarmup(Shape(), few, Always()).ok());
  EXPECT_LT(few.begun, few.batches.size());
  EXPECT_FALSE(few.logit_calls.empty());
}

TEST(Warmup, TakesNoMoreBlocksOfLayersWithAWindowThanTheyWillHave) {
  FakeBackend backend(10);
  WarmupShape shape = Shape();
  shape.window_blocks = 2;
  ASSERT_TRUE(RunWarmup(shape, backend, Always()).ok());
  EXPECT_EQ(backend.cache_blocks, 5u);
  EXPECT_EQ(backend.window_blocks, 2u);
  for (const FakeBackend::Recorded& batch : backend.batches) {
    for (const BlockId block : batch.window_blocks[0]) EXPECT_LT(block.value(), 2u);
    EXPECT_EQ(batch.window_blocks[0].size(), batch.blocks[0].size());
  }
}

TEST(Warmup, StaysWithinTheSmallestLimits) {
  FakeBackend backend(10);
  WarmupShape shape = Shape();
  shape.max_step_tokens = 1;
  shape.max_sequences = 1;
  shape.max_sequence_length = 1;
  shape.pool_tokens = 8;
  EXPECT_TRUE(RunWarmup(shape, backend, Always()).ok());
}

TEST(Warmup, EndsWhenItIsInterrupted) {
  FakeBackend backend(10);
  int asked = 0;
  WarmupControl control = Always();
  control.continues = [&asked] { return ++asked < 3; };
  const auto samples = RunWarmup(Shape(), backend, control);
  EXPECT_TRUE(absl::IsCancelled(samples.status()));
  EXPECT_EQ(backend.batches.size(), 2u);
}

// On a machine where a row takes 10 ms, like a model of 1.1 B parameters on two cores, the worst
// steps alone take long. The rest of the time is for cheap steps.
TEST(Warmup, KeepsItsTimeLimitIfStepsAreSlow) {
  for (const int ms_per_row : {10, 100}) {
    FakeBackend backend(10);
    Time now{};
    backend.on_execute = [&](const RaggedBatch& batch) {
      now += std::chrono::milliseconds(50 + ms_per_row * batch.tokens.size());
    };
    WarmupShape shape = Shape();
    shape.max_step_tokens = 512;
    shape.max_sequences = 128;
    shape.max_sequence_length = 8192;
    shape.pool_tokens = 128 * 1024;
    WarmupControl control = Always();
    control.clock = [&now] { return now; };
    std::size_t left_out = 0;
    control.on_left_out = [&left_out](std::size_t steps) { left_out = steps; };
    const auto samples = RunWarmup(shape, backend, control);
    ASSERT_TRUE(samples.ok()) << samples.status();
    EXPECT_GT(left_out, 0u);
    const Duration worst = std::chrono::milliseconds(2 * 50 + ms_per_row * (512 + 128));
    const Duration whole = now - Time{};
    EXPECT_LE(whole, worst + kWarmupTime) << ms_per_row;
    EXPECT_GT(whole, worst + kWarmupTime / 2) << "the time is used";
    EXPECT_GE(samples->size(), 8u) << ms_per_row;
    const auto has = [&](std::uint32_t prompt, std::uint32_t rows) {
      return std::any_of(samples->begin(), samples->end(), [&](const StepTimeSample& sample) {
        return sample.prefill_tokens == prompt && sample.decode_rows == rows;
      });
    };
    EXPECT_TRUE(has(512, 0) && has(0, 128)) << "the worst steps are samples";
    EXPECT_TRUE(has(1, 0) && has(0, 1));
  }
}

// One time of a small step is noise.
TEST(Warmup, RepeatsCheapStepsEvenIfTheLargestTakeMostOfTheTime) {
  FakeBackend backend(10);
  Time now{};
  backend.on_execute = [&](const RaggedBatch& batch) {
    now += std::chrono::milliseconds(10 + batch.tokens.size());
  };
  WarmupShape shape = Shape();
  shape.max_step_tokens = 2048;
  shape.max_sequences = 64;
  shape.max_sequence_length = 2560;
  shape.pool_tokens = 64 * 2560;
  WarmupControl control = Always();
  control.clock = [&now] { return now; };
  ASSERT_TRUE(RunWarmup(shape, backend, control).ok());
  const auto times = [&](std::uint32_t segments, std::uint32_t tokens) {
    return std::count_if(backend.batches.begin(), backend.batches.end(), [&](const auto& batch) {
      return batch.segments.size() == segments && batch.segments.back().query_count == tokens;
    });
  };
  EXPECT_EQ(times(1, 8), 3);
  EXPECT_EQ(times(9, 8), 3) << "a prompt beside decodes";
  EXPECT_LT(times(1, 1024), 3);
}

TEST(Warmup, ComputesPromptsBesideDecodes) {
  FakeBackend backend(10);
  const auto samples = RunWarmup(Shape(), backend, Always());
  ASSERT_TRUE(samples.ok());
  const auto mixed = [](const StepTimeSample& s) { return s.prefill_tokens * s.decode_rows > 0; };
  const auto found = std::find_if(samples->begin(), samples->end(), mixed);
  ASSERT_NE(found, samples->end());
  EXPECT_EQ(found->prefill_tokens, 8u);
  EXPECT_EQ(found->decode_rows, 6u);
  const auto ran = [](const auto& batch) {
    const auto& segments = batch.segments;
    return segments.size() == 7 && segments[0].query_count == 1 && batch.tokens.size() == 14 &&
           segments[6].query_start == 6 && segments[6].query_count == 8 &&
           segments[6].context_length == 0;
  };
  EXPECT_TRUE(std::any_of(backend.batches.begin(), backend.batches.end(), ran));
}

// All ranks must run the same steps, so rank 0 decides when the sweep ends.
TEST(Warmup, EndsTheSweepWhenRank0Decides) {
  FakeBackend backend(10);
  WarmupControl control = Always();
  int asked = 0;
  // The first question is whether steps take memory.
  control.agree = [&asked](bool mine) -> absl::StatusOr<bool> {
    return asked++ == 0 ? mine : asked < 5;
  };
  const auto samples = RunWarmup(Shape(), backend, control);
  ASSERT_TRUE(samples.ok());
  EXPECT_EQ(samples->size(), 5u) << "three of the sweep and the two worst steps";
}

TEST(Warmup, TheSweepFitsTheLimits) {
  for (const std::uint32_t length : {1u, 2u, 100u, 5000u, 200'000u}) {
    for (const std::uint32_t sequences : {1u, 7u, 500u}) {
      const SweepLimits limits{512, sequences, length, 40'000};
      const auto steps = WarmupSweep(limits);
      EXPECT_LE(steps.size(), 32u);
      const auto largest = [&steps](auto&& size) {
        return size(*std::max_element(steps.begin(), steps.end(),
                                      [&size](auto& a, auto& b) { return size(a) < size(b); }));
      };
      EXPECT_EQ(largest([](auto& step) { return step.prefill_tokens; }), std::min(512u, length));
      EXPECT_EQ(largest([](auto& step) { return step.decode_rows; }), std::min(128u, sequences));
      for (const StepTimeSample& step : steps) {
        const std::uint32_t before = step.decode_rows > 0 ? 0 : step.context_tokens;
        EXPECT_LE(step.prefill_tokens + before, length);
        EXPECT_LE(step.prefill_tokens + step.decode_rows, 512u);
        EXPECT_LE(step.decode_rows * step.context_tokens, limits.pool_tokens);
        EXPECT_LT(step.decode_rows > 0 ? step.context_tokens : 0, length);
      }
    }
  }
}

// A measured table with all times multiplied by `factor`.
std::vector<StepTimeSample> Known(int factor) {
  FakeBackend backend(10);
  auto samples = RunWarmup(Shape(), backend, Always());
  EXPECT_TRUE(samples.ok());
  for (StepTimeSample& sample : *samples) sample.time *= factor;
  return *samples;
}

TEST(Warmup, AKeptTableIsCheckedNotMeasuredAgain) {
  FakeBackend backend(10);
  WarmupControl control = Always();
  control.kept = Known(1);
  // The steps of the fake are too short to be timed, so the checks always succeed.
  int checks = 0;
  control.agree = [&checks](bool) -> absl::StatusOr<bool> { return ++checks > 0; };
  const auto samples = RunWarmup(Shape(), backend, control);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(*samples, control.kept);
  EXPECT_TRUE(Ran(backend, 1, 16, 24)) << "the worst steps run nevertheless";
  FakeBackend whole(10);
  ASSERT_TRUE(RunWarmup(Shape(), whole, Always()).ok());
  EXPECT_LT(backend.batches.size(), whole.batches.size() / 2);
}

// A model of 1.1 B parameters with its own limits, where each row takes `per_row`. The first step
// of a fresh process is slower.
class WarmupOfAFreshProcess : public testing::Test {
 protected:
  std::vector<StepTimeSample> Run(Duration per_row, std::vector<StepTimeSample> known) {
    FakeBackend backend(10);
    backend.takes_memory_in_steps = false;
    bool first = true;
    const Time begin = now_;
    backend.on_execute = [&](const RaggedBatch& batch) {
      now_ += (first ? 5 : 1) * (8 + batch.tokens.size()) * per_row;
      first = false;
    };
    WarmupControl control = Always();
    control.kept = std::move(known);
    control.clock = [this] { return now_; };
    const auto samples = RunWarmup(Large(), backend, control);
    EXPECT_TRUE(samples.ok()) << samples.status();
    spent_ = now_ - begin;
    ran_the_worst_ = Ran(backend, 1, 512, 2048 - 512);
    return *samples;
  }

  static constexpr Duration kPerRow = std::chrono::milliseconds(6);
  Duration spent_{0};
  bool ran_the_worst_ = false;

 private:
  static WarmupShape Large() {
    WarmupShape shape = Shape();
    shape.max_step_tokens = 512;
    shape.max_sequences = 128;
    shape.max_sequence_length = 2048;
    shape.pool_tokens = 128 * 1024;
    return shape;
  }
  Time now_{};
};

TEST_F(WarmupOfAFreshProcess, ChecksAKeptTableWithCheapStepsOnly) {
  const auto known = Run(kPerRow, {});
  EXPECT_TRUE(ran_the_worst_);
  EXPECT_EQ(Run(kPerRow, known), known);
  EXPECT_FALSE(ran_the_worst_);
  EXPECT_LT(spent_, std::chrono::seconds(2));
}

TEST_F(WarmupOfAFreshProcess, MeasuresAllStepsOnAMachineOfAnotherSpeed) {
  const auto known = Run(kPerRow, {});
  for (const Duration other : {3 * kPerRow, kPerRow / 3}) {
    const auto samples = Run(other, known);
    EXPECT_NE(samples, known) << other / std::chrono::milliseconds(1);
    EXPECT_TRUE(ran_the_worst_);
  }
}

// A model of 1.1 B parameters on two cores with 131,072 positions.
TEST(Warmup, KeepsItsTimeLimitForAnyContextIfStepsTakeNoMemory) {
  for (const bool takes_memory : {false, true}) {
    FakeBackend backend(10);
    backend.takes_memory_in_steps = takes_memory;
    Time now{};
    backend.on_execute = [&](const RaggedBatch& batch) {
      std::uint64_t positions = 0;
      for (const RaggedSegment& segment : batch.segments) {
        positions += segment.query_count * (1024u + segment.context_length);
      }
      now += positions * std::chrono::microseconds(4);
    };
    WarmupShape shape = Shape();
    shape.max_step_tokens = 512;
    shape.max_sequences = 64;
    shape.max_sequence_length = 131'072;
    shape.max_candidates = 4;
    shape.max_candidate_rows = 8;
    shape.pool_tokens = 500'000;
    WarmupControl control = Always();
    control.clock = [&now] { return now; };
    const auto samples = RunWarmup(shape, backend, control);
    ASSERT_TRUE(samples.ok()) << samples.status();
    EXPECT_GE(samples->size(), 16u);
    EXPECT_EQ(Ran(backend, 1, 512, 131'072 - 512), takes_memory);
    EXPECT_EQ(std::any_of(backend.batches.begin(), backend.batches.end(),
                          [](const auto& batch) { return batch.segments[0].candidates; }),
              takes_memory);
    // The two worst steps take 10.7 s of it.
    EXPECT_EQ(now - Time{} <= 2 * kWarmupTime + kLeastSweepTime, !takes_memory);
  }
}

TEST(Warmup, AKeptTableOfAnotherSpeedIsMeasuredAgain) {
  FakeBackend backend(10);
  WarmupControl control = Always();
  control.kept = Known(1000);
  const auto samples = RunWarmup(Shape(), backend, control);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->size(), control.kept.size());
  EXPECT_LT(samples->front().time, control.kept.front().time / 10);
}

TEST(Warmup, ReturnsTheErrorOfTheBackend) {
  FakeBackend backend(10);
  backend.execute_status = absl::ResourceExhaustedError("no memory");
  EXPECT_TRUE(absl::IsResourceExhausted(RunWarmup(Shape(), backend, Always()).status()));
}

}  // namespace
}  // namespace penstock::shard
