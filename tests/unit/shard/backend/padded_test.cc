// The padded KV layout with the real core, the executor and each backend that has it: what the core
// predicts is allocated in every step, and every answer has the bits of the paged layout, however
// the batch is divided.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/reference/reference_backend.h"
#include "shard/model/model.h"
#include "tests/unit/shard/backend/core_run.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

using scheduler::Arrival;

constexpr std::uint32_t kBlocks = 96;
constexpr std::uint32_t kCells = 900;
constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kStepTokens = 96;
constexpr std::uint32_t kLongest = 256;
constexpr std::size_t kCancelledAfter = 3;  // tokens

struct Computes {
  const char* name;
  bool cpu = true;
  DType dtype = DType::kFloat32;
  KvType kv_type = KvType::kAuto;
};
void PrintTo(const Computes& computes, std::ostream* out) { *out << computes.name; }

struct Case {
  bool padded = false;
  std::uint32_t max_splits = 3;
  bool contrastive = false;
  bool cancels = false;  // of every fifth request, after a few of its tokens
};

// Prompts of 3 to 160 tokens, some of which begin alike; greedy, sampled, contrastive.
std::vector<Arrival> Requests(bool contrastive) {
  std::mt19937 random(5);
  std::vector<Arrival> requests;
  for (std::uint64_t i = 0; i < 14; ++i) {
    Arrival arrival;
    arrival.request = RequestId(i);
    const std::uint32_t length = i % 4 == 0 ? 100 + random() % 60 : 3 + random() % 20;
    for (std::uint32_t t = 0; t < length; ++t) {
      arrival.prompt.push_back(t < 40 && i % 4 == 0 ? 20 + static_cast<TokenId>(t)
                                                    : 10 + static_cast<TokenId>(random() % 500));
    }
    arrival.max_new_tokens = 4 + random() % 30;
    arrival.ignore_eos = i % 2 == 0;
    arrival.logprobs.kind = LogprobRequest::Kind::kRaw;
    arrival.sampling.seed = i;
    if (i % 3 == 1) {
      arrival.sampling.do_sample = true;
      arrival.sampling.temperature = 0.8f;
    }
    if (contrastive && i % 3 == 2) {
      arrival.sampling.penalty_alpha = 0.6f;
      arrival.sampling.top_k = 4;
    }
    requests.push_back(std::move(arrival));
  }
  return requests;
}

class PaddedBackend : public testing::TestWithParam<Computes> {
 protected:
  Answers Serve(const Case& setup) { return ServeSome(setup, Requests(setup.contrastive)); }

  // Sends the requests over some steps, with two plans in flight, and waits for all answers.
  Answers ServeSome(const Case& setup, const std::vector<Arrival>& requests) {
    auto model =
        Model::Open({testing_support::SourcePath("demo/model"), GetParam().dtype, Device(), 0, 1});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return {};
    const auto backend = MakeBackend(*model, setup);
    CoreRun::Options options;
    options.executor.slots = kSlots;
    options.executor.vocabulary = model->spec.vocabulary;
    options.executor.eos_token_ids = model->spec.eos_token_ids;
    options.config.max_step_tokens = kStepTokens;
    options.config.split = scheduler::SplitObjective::kSparsity;
    options.config.max_splits = setup.max_splits;
    options.config.max_sparsity_ppm = 20'000;
    options.capacity.blocks = kBlocks;
    options.capacity.slots = kSlots;
    options.capacity.max_sequence_length = kLongest;
    options.capacity.max_step_tokens = kStepTokens;
    options.capacity.padded_attention = setup.padded;
    options.capacity.cells = setup.padded ? kCells : 0;
    options.capacity.max_candidates = setup.contrastive ? 8 : 0;
    CoreRun run(options, *backend);
    if (setup.cancels) run.CancelAfter(kCancelledAfter, IsCancelled);
    std::uint32_t step = 0;
    const auto arriving = [&step] { return step++ % 3 == 0 ? 2u : 0u; };
    return run.Serve(requests, arriving,
                     [&](const StepPlan& plan, const scheduler::StepInfo& info,
                         const StepResult& result) { CheckCells(setup, plan, info, result); });
  }

  static bool IsCancelled(RequestId request) { return request.value() % 5 == 1; }

  static std::unique_ptr<Backend> MakeBackend(const Model& model, const Case& setup) {
    std::unique_ptr<Backend> backend = GetParam().cpu ? MakeCpu(model) : MakeReference(model);
    const std::uint32_t candidate_rows = setup.contrastive ? 32 : 0;
    EXPECT_TRUE(backend->Prepare({kStepTokens, kLongest, 64, candidate_rows}, nullptr).ok());
    EXPECT_TRUE(backend->SetCells(setup.padded ? kCells : 0, kSlots).ok());
    EXPECT_TRUE(backend->AllocateCache(kBlocks).ok());
    return backend;
  }

  static std::unique_ptr<Backend> MakeCpu(const Model& model) {
    CpuOptions options;
    options.program = model.program;
    options.weights = *model.Load(nullptr);
    options.dtype = model.dtype;
    options.kv_type = GetParam().kv_type;
    options.threads = 2;
    return *MakeCpuBackend(std::move(options));
  }

  static std::unique_ptr<Backend> MakeReference(const Model& model) {
    ReferenceOptions options;
    options.program = model.program;
    options.weights = *model.Load(nullptr);
    options.dtype = model.dtype;
    return *MakeReferenceBackend(std::move(options));
  }

  void CheckCells(const Case& setup, const StepPlan& plan, const scheduler::StepInfo& info,
                  const StepResult& result) {
    ASSERT_EQ(result.cells.allocated, info.decode_cells) << "step " << plan.step.value();
    ASSERT_LE(result.cells.filled, result.cells.allocated);
    if (!setup.padded) return;
    ASSERT_LE(info.decode_parts, setup.max_splits);
    most_parts_ = std::max(most_parts_, info.decode_parts);
  }

  std::uint32_t most_parts_ = 0;
};

TEST_P(PaddedBackend, AnswersHaveTheBitsOfThePagedLayoutForEveryNumberOfParts) {
  const Answers paged = Serve({});
  ASSERT_EQ(paged.size(), 14u);
  for (std::uint32_t splits = 1; splits <= 4; ++splits) {
    most_parts_ = 0;
    EXPECT_EQ(Serve({true, splits}), paged) << splits << " parts";
    EXPECT_EQ(most_parts_, splits) << "the load must really be split";
  }
}

TEST_P(PaddedBackend, ContrastiveSearchToo) {
  const Answers paged = Serve({false, 3, true});
  ASSERT_EQ(paged.size(), 14u);
  EXPECT_EQ(Serve({true, 3, true}), paged);
}

TEST_P(PaddedBackend, CancelledRequestsDoNotChangeOthers) {
  Answers paged = Serve({});
  Answers padded = Serve({.padded = true, .cancels = true});
  ASSERT_EQ(padded.size(), paged.size());
  std::uint32_t cancelled = 0;
  for (const auto& [id, answer] : padded) {
    if (answer.finish == FinishReason::kCancelled) {
      EXPECT_TRUE(IsCancelled(RequestId(id)));
      ++cancelled;
    } else {
      EXPECT_EQ(answer, paged[id]) << "request " << id;
    }
  }
  EXPECT_GT(cancelled, 0u);
}

TEST_P(PaddedBackend, EveryRequestAloneHasTheSameBits) {
  if (!GetParam().cpu) GTEST_SKIP() << "the reference backend promises equal tokens only";
  const Answers together = Serve({.padded = true});
  for (const Arrival& arrival : Requests(false)) {
    const std::uint64_t id = arrival.request.value();
    if (id % 3 > 0) continue;
    EXPECT_EQ(ServeSome({.padded = true}, {arrival}).at(id), together.at(id)) << "request " << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, PaddedBackend,
                         testing::Values(Computes{"reference", false}, Computes{"cpu"},
                                         Computes{"cpu_bfloat16", true, DType::kBFloat16},
                                         Computes{"cpu_int8_cells", true, DType::kBFloat16,
                                                  KvType::kInt8}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace penstock::shard
