// Weights in 12 bits each change no bit of a model's logits:
// docs/decisions/0038.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

std::unique_ptr<ModelRunner> Demo(CpuWeights weights, std::uint32_t threads) {
  RunnerOptions options;
  options.folder = testing_support::SourcePath("demo/model");
  options.backend = Runs::kCpu;
  options.dtype = DType::kBFloat16;
  options.cpu_threads = threads;
  options.weights_as = weights;
  return ModelRunner::Open(options);
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

TEST(CodedWeights, GiveTheLogitsOfPlainOnesBitForBit) {
  const CpuTypes types{.dtype = DType::kBFloat16, .weights = CpuWeights::kCoded};
  if (!CheckCpuBackend({}, types, 16).ok()) GTEST_SKIP() << "no coded weights on this processor";
  auto plain = Demo(CpuWeights::kPlain, 1);
  auto coded = Demo(CpuWeights::kAuto, 2);
  ASSERT_TRUE(plain != nullptr && coded != nullptr);
  EXPECT_EQ(coded->backend().Name(), "cpu/avx512-bf16-coded");
  EXPECT_EQ(plain->backend().Name(), "cpu/avx512-bf16");
  std::vector<TokenId> prompt;
  for (TokenId i = 0; i < 70; ++i) prompt.push_back(3 + i * 13 % 500);
  ExpectSameBits(coded->Prefill(0, prompt, 70), plain->Prefill(0, prompt, 70));
  ExpectSameBits(coded->Prefill(1, prompt, 17), plain->Prefill(1, prompt, 17));
  for (TokenId token = 5; token < 30; ++token) {
    const std::vector<ModelRunner::Feed> feeds = {{0, {token}}, {1, {token + 1}}};
    const auto ours = coded->Step(feeds);
    const auto given = plain->Step(feeds);
    for (std::size_t i = 0; i < given.size(); ++i) ExpectSameBits(ours[i], given[i]);
  }
}

}  // namespace
}  // namespace penstock::shard
