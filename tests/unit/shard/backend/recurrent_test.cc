// Models with recurrent layers: the state of a sequence is its own, whatever the chunks, the slot
// and the other sequences of a step. The checkpoints are those of model_goldens_test.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/status.h"
#include "tests/unit/shard/backend/model_checkpoints.h"
#include "tests/unit/shard/backend/model_runner.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;
using Logits = std::vector<float>;

constexpr std::uint32_t kDrafts = 3;

std::vector<TokenId> Text(std::size_t length, TokenId first) {
  std::vector<TokenId> text;
  for (std::size_t i = 0; i < length; ++i) {
    text.push_back((first + static_cast<TokenId>(i * i * 7 + i * 3)) % 250);
  }
  return text;
}

// Backend, and type and variant of the checkpoint.
class Recurrent : public testing::TestWithParam<std::tuple<Runs, std::string>> {
 protected:
  std::unique_ptr<ModelRunner> Open(std::uint32_t threads = 1) {
    RunnerOptions options;
    options.backend = std::get<0>(GetParam());
    options.folder = CheckpointFolder() + "/" + std::get<1>(GetParam());
    options.dtype = DType::kFloat32;
    options.cpu_threads = threads;
    options.max_sequence_length = 128;
    options.max_draft_rows = kDrafts;
    options.snapshots = 2;
    return ModelRunner::Open(options);
  }

  // The cpu backend promises the same bits for every cut of a text, libtorch close values.
  static void ExpectSame(const Logits& logits, const Logits& expected) {
    if (std::get<0>(GetParam()) == Runs::kCpu) {
      EXPECT_EQ(logits, expected);
    } else {
      EXPECT_THAT(logits, testing::Pointwise(testing::FloatNear(1e-4f), expected));
    }
  }
};

TEST_P(Recurrent, BitsDoNotDependOnChunks) {
  auto runner = Open();
  ASSERT_NE(runner, nullptr);
  const std::vector<TokenId> text = Text(45, 3);
  const Logits whole = runner->Prefill(0, text, 128);
  for (const std::size_t chunk : {1, 2, 3, 7, 44}) {
    SCOPED_TRACE("chunks of " + std::to_string(chunk));
    ExpectSame(runner->Prefill(1, text, chunk), whole);
    runner->Reset(1);
  }
}

TEST_P(Recurrent, BitsDoNotDependOnOtherSequencesOrThreads) {
  auto alone = Open();
  auto shared = Open(3);
  ASSERT_NE(alone, nullptr);
  ASSERT_NE(shared, nullptr);
  const std::vector<TokenId> first = Text(21, 5), second = Text(9, 40), third = Text(33, 90);
  const Logits expected = alone->Prefill(0, first, 128);
  const Logits next = alone->Step({{0, {17}}}).at(0);
  shared->Prefill(2, second, 128);
  ExpectSame(shared->Step({{2, {8}}, {1, first}, {3, third}}).at(1), expected);
  ExpectSame(shared->Step({{3, {4}}, {1, {17}}, {2, {200}}}).at(1), next);
}

TEST_P(Recurrent, ATextBeginsWithoutTheStateOfTheOneBefore) {
  auto runner = Open();
  ASSERT_NE(runner, nullptr);
  const std::vector<TokenId> text = Text(12, 60);
  const Logits expected = runner->Prefill(0, text, 128);
  runner->Prefill(1, Text(30, 1), 128);
  runner->Reset(1);
  ExpectSame(runner->Prefill(1, text, 1), expected);
}

// A step may have fewer rows than the convolution has inputs.
TEST_P(Recurrent, TheStateIsThatAfterTheLastRightDraft) {
  auto runner = Open(2);
  auto plain = Open();
  ASSERT_NE(runner, nullptr);
  ASSERT_NE(plain, nullptr);
  const std::vector<TokenId> text = Text(12, 60);
  for (std::uint32_t right = 0; right <= kDrafts; ++right) {
    SCOPED_TRACE(std::to_string(right) + " drafts are right");
    runner->Prefill(0, text, 128);
    plain->Prefill(0, text, 128);
    const std::vector<TokenId> right_tokens = {7, 8, 9, 10};
    std::vector<TokenId> tokens = right_tokens;
    std::fill(tokens.begin() + 1 + right, tokens.end(), 200);
    for (int step = 0; step < 2; ++step) {
      const ModelRunner::Feed fed{0, tokens, kDrafts};
      runner->Step({fed});
      runner->KeepDrafts(fed, right);
      plain->Step({{0, {right_tokens.begin(), right_tokens.begin() + 1 + right}}});
    }
    ExpectSame(runner->Step({{0, {4}}}).at(0), plain->Step({{0, {4}}}).at(0));
    runner->Reset(0);
    plain->Reset(0);
  }
}

// The slot that is saved has exchanged its state for that of a draft.
TEST_P(Recurrent, ATextContinuesFromASnapshot) {
  auto runner = Open();
  auto plain = Open();
  ASSERT_NE(runner, nullptr);
  ASSERT_NE(plain, nullptr);
  std::vector<TokenId> text = Text(32, 60);
  runner->Prefill(0, {text.begin(), text.begin() + 29}, 128);
  const ModelRunner::Feed fed{0, {text.begin() + 29, text.end()}, 2};
  runner->Step({fed});
  runner->KeepDrafts(fed, 2);
  runner->Save(0, 1);
  runner->Save(0, 0);
  const std::vector<TokenId> others = Text(20, 7), more = Text(5, 30);
  runner->Prefill(0, others, 128);
  runner->Prefill(1, others, 128);
  runner->Restore(1, 1, 0, 32);
  plain->Prefill(0, text, 128);
  ExpectSame(runner->Step({{1, more}}).at(0), plain->Step({{0, more}}).at(0));
}

TEST_P(Recurrent, RefusesUnknownSnapshots) {
  auto runner = Open();
  ASSERT_NE(runner, nullptr);
  const StateCopy unknown[] = {{SlotId(0), BlockId(2)}, {SlotId(64), BlockId(1)}};
  EXPECT_THAT(Message(runner->backend().SaveStates({unknown, 1})), HasSubstr("snapshot 2"));
  EXPECT_THAT(Message(runner->backend().RestoreStates({unknown + 1, 1})), HasSubstr("slot 64"));
}

TEST_P(Recurrent, RefusesMoreDraftsThanItHasStatesFor) {
  auto runner = Open();
  ASSERT_NE(runner, nullptr);
  runner->Prefill(0, Text(4, 1), 128);
  const std::vector<TokenId> tokens(kDrafts + 2, 7);
  const std::vector<std::uint32_t> rows = {0};
  std::vector<RaggedSegment> segments = {{0, kDrafts + 2, 4, runner->table(0)}};
  segments[0].drafts = kDrafts + 1;
  EXPECT_THAT(Message(runner->backend().Execute({tokens, segments, rows})),
              HasSubstr("`draft rows` must be at most 3. Given: 4"));
  segments[0].drafts = kDrafts + 2;
  EXPECT_THAT(Message(runner->backend().Execute({tokens, segments, rows})),
              HasSubstr("segment.drafts"));
  segments[0].drafts = kDrafts;
  ASSERT_EQ(Message(runner->backend().Execute({tokens, segments, rows})), "");
  const DraftsKept kept{0, kDrafts + 1};
  EXPECT_THAT(Message(runner->backend().KeepDrafts({&kept, 1})), HasSubstr("fewer than 4 drafts"));
}

TEST_P(Recurrent, FullLayersAloneHaveAKvCache) {
  auto runner = Open();
  ASSERT_NE(runner, nullptr);
  const Program& program = runner->model().program;
  EXPECT_EQ(program.caches.size() + program.states.size(), runner->model().spec.layers);
  EXPECT_GT(program.StateBytes(), 0u);
}

TEST_P(Recurrent, RefusesCandidatesAndUnknownStates) {
  auto runner = Open();
  ASSERT_NE(runner, nullptr);
  runner->Prefill(0, Text(4, 1), 128);
  const std::vector<TokenId> tokens = {7};
  const std::vector<std::uint32_t> rows = {0};
  RaggedSegment segment{0, 1, 4, runner->table(0)};
  segment.state = SlotId(64);
  std::vector<RaggedSegment> segments = {segment};
  EXPECT_THAT(Message(runner->backend().Execute({tokens, segments, rows})),
              HasSubstr("segment.state"));
  segments[0].state = SlotId(0);
  segments[0].candidates = true;
  EXPECT_THAT(Message(runner->backend().Execute({tokens, segments, rows})),
              HasSubstr("segment.candidates"));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Recurrent,
    testing::Combine(testing::Values(Runs::kReference, Runs::kCpu),
                     testing::Values("qwen3_5-v5_interval_tied", "qwen3_5-v5_text",
                                     "qwen3_next-v5_dense_layer", "lfm2-v5_biases")),
    [](const auto& info) {
      std::string name = std::get<1>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      const bool cpu = std::get<0>(info.param) == Runs::kCpu;
      return name + (cpu ? "_cpu" : "_reference");
    });

}  // namespace
}  // namespace penstock::shard
