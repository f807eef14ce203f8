// Compressed weights change no bit of a model's logits:
// docs/decisions/0038.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

std::unique_ptr<ModelRunner> Demo(const std::string& format, std::uint32_t threads) {
  RunnerOptions options;
  options.folder = testing_support::SourcePath("demo/model");
  options.backend = Runs::kCpu;
  options.dtype = DType::kBFloat16;
  options.cpu_threads = threads;
  options.weight_format = format;
  return ModelRunner::Open(options);
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

TEST(CompressedWeights, GiveTheLogitsOfPlainOnesBitForBit) {
  const CpuTypes types{.dtype = DType::kBFloat16, .weight_format = "compressed"};
  if (!CheckCpuBackend({}, types, 16).ok())
    GTEST_SKIP() << "no compressed weights on this processor";
  auto plain = Demo("plain", 1);
  auto compressed = Demo("auto", 2);
  ASSERT_TRUE(plain != nullptr && compressed != nullptr);
  EXPECT_EQ(compressed->backend().Name(), "cpu/avx512-bf16-compressed");
  EXPECT_EQ(plain->backend().Name(), "cpu/avx512-bf16");
  std::vector<TokenId> prompt;
  for (TokenId i = 0; i < 70; ++i) prompt.push_back(3 + i * 13 % 500);
  ExpectSameBits(compressed->Prefill(0, prompt, 70), plain->Prefill(0, prompt, 70));
  ExpectSameBits(compressed->Prefill(1, prompt, 17), plain->Prefill(1, prompt, 17));
  for (TokenId token = 5; token < 30; ++token) {
    const std::vector<ModelRunner::Feed> feeds = {{0, {token}}, {1, {token + 1}}};
    const auto ours = compressed->Step(feeds);
    const auto given = plain->Step(feeds);
    for (std::size_t i = 0; i < given.size(); ++i) ExpectSameBits(ours[i], given[i]);
  }
}

}  // namespace
}  // namespace penstock::shard
