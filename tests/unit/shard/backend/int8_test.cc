// What int8 and int4 weights and int8 K/V change in the answers of the demo model, measured on text
// that the model itself samples: the bounds are those of docs/decisions/0023 and 0053.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include "shard/backend/cpu/kernels.h"
#include "shard/cache/paged/paged_layout.h"
#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

std::vector<double> Probabilities(const std::vector<float>& logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> all;
  double sum = 0;
  for (float logit : logits) sum += all.emplace_back(std::exp(double{logit} - largest));
  for (double& one : all) one /= sum;
  return all;
}

std::size_t FirstChoice(const std::vector<double>& p) {
  return static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
}

std::unique_ptr<ModelRunner> Demo(Quantization quantization, KvType kv_type = KvType::kAuto) {
  RunnerOptions options;
  options.folder = testing_support::SourcePath("demo/model");
  options.backend = Runs::kCpu;
  options.quantization = quantization;
  options.kv_type = kv_type;
  options.weight_format = "plain";  // two bytes each, of which int8 saves one
  return ModelRunner::Open(options);
}

// Means per token of a text, in nats.
struct Difference {
  double divergence = 0;         // Kullback-Leibler, of the quantised model from the other
  double cross_entropy = 0;      // of the quantised model; e to its power is the perplexity
  double entropy = 0;            // of the other
  double same_first_choice = 0;  // share of tokens
};

// Measures on text that the model without quantisation samples.
Difference Measure(ModelRunner& plain, ModelRunner& quantized, std::uint32_t seed) {
  constexpr int kSequences = 4;
  constexpr int kTokens = 200;
  constexpr double kShare = 1.0 / (kSequences * kTokens);
  std::mt19937 random(seed);
  Difference mean;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    auto token = static_cast<TokenId>(plain.model().spec.bos_token_id);
    for (int i = 0; i < kTokens; ++i) {
      const auto p = Probabilities(plain.Step({{sequence % 4, {token}}}).at(0));
      const auto q = Probabilities(quantized.Step({{sequence % 4, {token}}}).at(0));
      for (std::size_t t = 0; t < p.size(); ++t) {
        if (p[t] > 0) mean.divergence += kShare * p[t] * std::log(p[t] / q[t]);
      }
      mean.same_first_choice += FirstChoice(p) == FirstChoice(q) ? kShare : 0;
      std::discrete_distribution<std::size_t> choose(p.begin(), p.end());
      const std::size_t next = choose(random);
      mean.entropy -= kShare * std::log(p[next]);
      mean.cross_entropy -= kShare * std::log(q[next]);
      token = static_cast<TokenId>(next);
    }
  }
  return mean;
}

TEST(Int8, ChangesTheDemoModelLittle) {
  auto plain = Demo(Quantization::kNone);
  auto quantized = Demo(Quantization::kInt8);
  ASSERT_TRUE(plain != nullptr && quantized != nullptr);
  const Difference difference = Measure(*plain, *quantized, 7);
  std::cout << "divergence " << difference.divergence << ", perplexity "
            << std::exp(difference.entropy) << " -> " << std::exp(difference.cross_entropy)
            << ", same first choice " << difference.same_first_choice << '\n';
  EXPECT_LT(difference.divergence, 0.005);
  EXPECT_LT(difference.cross_entropy - difference.entropy, 0.01);  // perplexity 1 %
  EXPECT_GT(difference.same_first_choice, 0.95);
}

TEST(Int4, ChangesTheDemoModelWithinBounds) {
  auto plain = Demo(Quantization::kNone);
  auto quantized = Demo(Quantization::kInt4);
  ASSERT_TRUE(plain != nullptr && quantized != nullptr);
  const Difference difference = Measure(*plain, *quantized, 7);
  std::cout << "divergence " << difference.divergence << ", perplexity "
            << std::exp(difference.entropy) << " -> " << std::exp(difference.cross_entropy)
            << ", same first choice " << difference.same_first_choice << '\n';
  EXPECT_LT(difference.divergence, 0.02);
  EXPECT_LT(difference.cross_entropy - difference.entropy, 0.02);  // perplexity 2 %
  EXPECT_GT(difference.same_first_choice, 0.9);
}

// The bounds are those of docs/architecture.md.
TEST(Int8Cells, ChangeTheDemoModelLittle) {
  auto plain = Demo(Quantization::kNone);
  auto quantized = Demo(Quantization::kNone, KvType::kInt8);
  ASSERT_TRUE(plain != nullptr && quantized != nullptr);
  const Difference difference = Measure(*plain, *quantized, 8);
  std::cout << "divergence " << difference.divergence << ", perplexity "
            << std::exp(difference.entropy) << " -> " << std::exp(difference.cross_entropy)
            << ", same first choice " << difference.same_first_choice << '\n';
  EXPECT_LT(difference.divergence, 0.0002);
  EXPECT_LT(difference.cross_entropy - difference.entropy, 0.01);  // perplexity 1 %
  EXPECT_GT(difference.same_first_choice, 0.98);
}

TEST(Int8Cells, TakeAByteAndAScale) {
  auto plain = Demo(Quantization::kNone);
  auto quantized = Demo(Quantization::kNone, KvType::kInt8);
  ASSERT_TRUE(plain != nullptr && quantized != nullptr);
  const Model& model = plain->model();
  PagedLayout layout{model.program.caches, 16, model.dtype};
  const std::uint64_t before = layout.BytesPerToken();
  layout.kv_type = quantized->model().kv_type;
  const std::uint64_t heads = std::uint64_t{2} * model.spec.layers * model.part.kv_heads;
  EXPECT_EQ(layout.BytesPerToken(), heads * (model.spec.head_dim + 4));
  EXPECT_EQ(before, heads * model.spec.head_dim * DTypeBytes(model.dtype));
  EXPECT_LT(quantized->backend().MemoryBytes(), plain->backend().MemoryBytes());
  EXPECT_NE(plain->model().fingerprint, quantized->model().fingerprint);
  EXPECT_TRUE(quantized->backend().Name().ends_with("/kv-int8")) << quantized->backend().Name();
  EXPECT_FALSE(plain->backend().Name().ends_with("/kv-int8"));
}

std::uint64_t WeightBytes(const ModelRunner& runner) {
  const Model& model = runner.model();
  const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
  const auto bytes = CpuWeightBytes(model.program, source,
                                    {.dtype = model.dtype,
                                     .quantization = model.quantization,
                                     .kv_type = model.kv_type,
                                     .weight_format = "plain"});
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or(0);
}

// Bytes of the model's matrices without the embedding. Each begins on a page. The demo model's
// sizes are whole panels, so only pages are padded.
std::uint64_t MatrixBytes(ModelRunner& runner) {
  constexpr std::uint64_t kPage = 4096;
  const Model& model = runner.model();
  const bool int8 = model.quantization == Quantization::kInt8;
  const bool int4 = model.quantization == Quantization::kInt4;
  const bool int16 = runner.backend().Name().ends_with("-int16");
  std::uint64_t bytes = 0;
  for (const WeightTarget& target : model.weight_plan.targets) {
    if (target.vector || target.name == "embedding") continue;
    std::uint64_t scales = int8 || int4 ? 1 : 0;  // of an output
    if (int16) scales = (target.columns + cpu::kIntegerGroup - 1) / cpu::kIntegerGroup;
    const std::uint64_t weight = int8 ? 1 : DTypeBytes(model.dtype);
    std::uint64_t matrix = target.rows * (target.columns * weight + scales * sizeof(float));
    if (int4) {
      const std::uint64_t groups = (target.columns + cpu::kIntegerGroup - 1) / cpu::kIntegerGroup;
      matrix = target.rows * (target.columns / 2 + groups * cpu::kInt4HeaderBytes + sizeof(float));
    }
    bytes += (matrix + kPage - 1) / kPage * kPage;
  }
  return bytes;
}

class Quantized : public testing::TestWithParam<Quantization> {};
INSTANTIATE_TEST_SUITE_P(Of, Quantized, testing::Values(Quantization::kInt8, Quantization::kInt4),
                         [](const auto& info) {
                           return std::string(QuantizationName(info.param));
                         });

// int8 halves the bytes and int4 quarters them, except for the scales and the embedding, which
// stays bfloat16.
TEST_P(Quantized, TheMemoryPlanCountsBytes) {
  auto plain = Demo(Quantization::kNone);
  auto quantized = Demo(GetParam());
  ASSERT_TRUE(plain != nullptr && quantized != nullptr);
  const std::uint64_t saved = WeightBytes(*plain) - WeightBytes(*quantized);
  EXPECT_EQ(saved, MatrixBytes(*plain) - MatrixBytes(*quantized));
  EXPECT_GT(10 * saved, (GetParam() == Quantization::kInt4 ? 6 : 4) * MatrixBytes(*plain));
  EXPECT_NEAR(static_cast<double>(plain->backend().MemoryBytes()) -
                  static_cast<double>(quantized->backend().MemoryBytes()),
              static_cast<double>(saved),
              0.5 * static_cast<double>(saved));  // less the rows of integers
  EXPECT_NE(plain->model().fingerprint, quantized->model().fingerprint);
  EXPECT_TRUE(quantized->backend().Name().ends_with(QuantizationName(GetParam())))
      << quantized->backend().Name();
}

}  // namespace
}  // namespace penstock::shard
