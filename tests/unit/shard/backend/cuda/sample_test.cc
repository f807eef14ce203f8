// The device samples the same tokens as shard/sampling, for the same rows and parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "shard/backend/cuda/sampling.h"
#include "shard/sampling/processors.h"
#include "shard/sampling/sampler.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"

namespace penstock::shard::cuda {
namespace {

struct Wish {
  SamplingParams params;
  std::uint32_t position = 0;
  TokenHistory history;
  std::vector<TokenId> masked;
};

class SamplerKernelTest : public testing::Test {
 protected:
  void SetUp() override { PENSTOCK_DEVICE_OR_SKIP(); }

  // Some values come twice, as those of a real model in bfloat16 do.
  std::vector<float> Row(std::uint32_t width) {
    std::normal_distribution<float> draw(0.0f, 3.0f);
    std::vector<float> row(width);
    for (float& value : row) value = std::round(draw(random_) * 16) / 16;
    return row;
  }

  static TokenId OnHost(std::vector<float> row, const Wish& wish) {
    Sampler sampler;
    const LogprobRequest no_logprobs;
    SampleRequest request{wish.params, no_logprobs};
    request.history = NeedsHistory(wish.params) ? &wish.history : nullptr;
    request.masked = wish.masked;
    request.position = wish.position;
    const auto sampled = sampler.Sample(row, request);
    return sampled.ok() ? sampled->token : -1;
  }

  std::vector<TokenId> OnDevice(const std::vector<std::vector<float>>& rows,
                                const std::vector<Wish>& wishes,
                                TokenLogprob logprob = TokenLogprob::kNone) {
    SharedVector<float> logits;
    SharedVector<SampleRow> params;
    SharedVector<SeenToken> seen;
    SharedVector<TokenBias> biases;
    SharedVector<std::int32_t> masked;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      logits.insert(logits.end(), rows[i].begin(), rows[i].end());
      const Wish& wish = wishes[i];
      SampleRow& row = params.emplace_back();
      row = {wish.params.seed,        wish.params.sibling,
             wish.position,           wish.params.do_sample ? 1u : 0u,
             wish.params.temperature, wish.params.top_k,
             wish.params.top_p,       wish.params.min_p};
      row.repetition_penalty = wish.params.repetition_penalty;
      row.frequency_penalty = wish.params.frequency_penalty;
      row.presence_penalty = wish.params.presence_penalty;
      row.logprob = logprob;
      row.first_seen = static_cast<std::uint32_t>(seen.size());
      for (const auto& [token, count] : wish.history.counts()) {
        seen.push_back({token, count});
      }
      row.seen_count = static_cast<std::uint32_t>(seen.size()) - row.first_seen;
      row.first_bias = static_cast<std::uint32_t>(biases.size());
      for (const auto& [token, bias] : wish.params.logit_bias) biases.push_back({token, bias});
      row.bias_count = static_cast<std::uint32_t>(biases.size()) - row.first_bias;
      row.first_masked = static_cast<std::uint32_t>(masked.size());
      masked.insert(masked.end(), wish.masked.begin(), wish.masked.end());
      row.masked_count = static_cast<std::uint32_t>(wish.masked.size());
    }
    SharedVector<std::int32_t> out(rows.size(), -7);
    SharedVector<float> logprobs(rows.size(), 1.0f);
    const auto width = static_cast<std::uint32_t>(rows[0].size());
    const auto count = static_cast<std::uint32_t>(rows.size());
    // What lies there must not matter.
    SharedVector<double> scratch(SampleScratchBytes(count, width) / sizeof(double) + 1, -1e300);
    SampleArgs args;
    args.logits = logits.data();
    args.rows = params.data();
    args.seen = seen.data();
    args.biases = biases.data();
    args.masked = masked.data();
    args.out = out.data();
    args.logprobs = logprobs.data();
    args.scratch = scratch.data();
    args.row_count = count;
    args.width = width;
    const absl::Status launched = SampleRows(args, nullptr);
    EXPECT_TRUE(launched.ok()) << launched;
    EXPECT_TRUE(FinishKernels().ok());
    logprobs_.assign(logprobs.begin(), logprobs.end());
    return {out.begin(), out.end()};
  }

  void Compare(std::uint32_t width, const std::vector<Wish>& wishes) {
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < wishes.size(); ++i) rows.push_back(Row(width));
    const std::vector<TokenId> got = OnDevice(rows, wishes);
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      EXPECT_EQ(got[i], OnHost(rows[i], wishes[i])) << "row " << i << " of width " << width;
    }
  }

  static SamplingParams Sampling(float temperature, std::uint32_t top_k, float top_p,
                                 float min_p = 0) {
    SamplingParams params;
    params.do_sample = true;
    params.temperature = temperature;
    params.top_k = top_k;
    params.top_p = top_p;
    params.min_p = min_p;
    return params;
  }

  std::mt19937 random_{11};
  std::vector<float> logprobs_;  // of the last rows on the device
};

TEST_F(SamplerKernelTest, DrawsAsTheHostDoesThroughEveryFilter) {
  const std::vector<SamplingParams> kinds = {{},
                                             Sampling(1.0f, 0, 1.0f),
                                             Sampling(0.7f, 5, 1.0f),
                                             Sampling(1.3f, 0, 0.9f),
                                             Sampling(0.9f, 40, 0.5f),
                                             Sampling(1.0f, 1, 1.0f),
                                             Sampling(2.0f, 0, 1e-6f),
                                             Sampling(1.0f, 0, 1.0f, 0.2f),
                                             Sampling(0.05f, 50, 0.95f, 0.01f),
                                             // In the widest row these need more tokens than a
                                             // block keeps in shared memory.
                                             Sampling(20.0f, 0, 0.9f),
                                             Sampling(20.0f, 2500, 1.0f)};
  for (std::uint32_t width : {1u, 37u, 700u, 2600u}) {
    std::vector<Wish> wishes;
    for (const SamplingParams& kind : kinds) {
      Wish& wish = wishes.emplace_back();
      wish.params = kind;
      wish.params.seed = 0x123456789abcdef + wishes.size();
      wish.params.sibling = static_cast<std::uint32_t>(wishes.size() % 3);
      wish.position = static_cast<std::uint32_t>(100 * wishes.size());
    }
    Compare(width, wishes);
  }
}

// Rows of one and of several parts, and of one token more or less than a part has.
TEST_F(SamplerKernelTest, DrawsAsTheHostDoesFromRowsOfManyParts) {
  const std::vector<SamplingParams> kinds = {{},
                                             Sampling(1.0f, 0, 1.0f),
                                             Sampling(0.7f, 50, 0.9f),
                                             Sampling(0.3f, 0, 0.95f),
                                             Sampling(1.0f, 0, 1.0f, 0.1f)};
  for (std::uint32_t width : {31u, 4095u, 4096u, 4097u, 32000u, 128256u, 151936u}) {
    std::vector<Wish> wishes(kinds.size());
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      wishes[i].params = kinds[i];
      wishes[i].params.seed = width + i;
      wishes[i].masked = {0, static_cast<TokenId>(width / 2)};
      wishes[i].params.logit_bias = {{static_cast<TokenId>(width - 1), 2.0f}};
    }
    Compare(width, wishes);
  }
}

TEST_F(SamplerKernelTest, TheLastTokenOfTheLastPartCanBeSampled) {
  for (std::uint32_t width : {4097u, 8192u}) {
    for (std::uint32_t token : {0u, 4095u, 4096u, width - 1}) {
      std::vector<float> row(width, 0.0f);
      row[token] = 30.0f;
      std::vector<Wish> wishes(3);
      wishes[1].params = Sampling(1.0f, 0, 1.0f);
      wishes[2].params = Sampling(1.0f, 2, 0.9f);
      const std::vector<TokenId> want(3, static_cast<TokenId>(token));
      EXPECT_EQ(OnDevice({row, row, row}, wishes), want) << width;
    }
  }
}

TEST_F(SamplerKernelTest, LogprobsAreThoseOfTheRowOrOfItsSurvivors) {
  const std::uint32_t width = 9000;
  std::vector<std::vector<float>> rows(3, Row(width));
  std::vector<Wish> wishes(3);
  wishes[1].params = Sampling(0.7f, 0, 1.0f, 0.2f);
  wishes[2].params = Sampling(0.7f, 3, 1.0f);
  // The logprob among the tokens whose logit / temperature is at least `least`.
  const auto logprob = [&](TokenId token, float temperature, double least) {
    double sum = 0;
    for (const float logit : rows[0]) {
      if (logit / temperature >= least) sum += std::exp(double{logit} / temperature);
    }
    return double{rows[0][static_cast<std::size_t>(token)]} / temperature - std::log(sum);
  };
  auto sorted = rows[0];
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<TokenId> tokens = OnDevice(rows, wishes, TokenLogprob::kOfRow);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(logprobs_[i], logprob(tokens[i], 1.0f, -1e9), 1e-4) << i;
  }
  tokens = OnDevice(rows, wishes, TokenLogprob::kOfSurvivors);
  EXPECT_NEAR(logprobs_[0], logprob(tokens[0], 1.0f, -1e9), 1e-4);
  const double least = sorted[0] / 0.7f + std::log(0.2f);
  EXPECT_NEAR(logprobs_[1], logprob(tokens[1], 0.7f, least), 1e-4);
  EXPECT_NEAR(logprobs_[2], logprob(tokens[2], 0.7f, sorted[2] / 0.7f), 1e-4);
}

TEST_F(SamplerKernelTest, TakesTheLowestOfEquals) {
  std::vector<float> row(9000, -1.0f);
  row[8999] = row[4100] = row[700] = 3.0f;
  EXPECT_EQ(OnDevice({row}, std::vector<Wish>(1)), std::vector<TokenId>{700});
}

TEST_F(SamplerKernelTest, AppliesBiasesPenaltiesAndMasksInTheHostsOrder) {
  std::vector<Wish> wishes(6);
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    Wish& wish = wishes[i];
    if (i % 2 == 1) wish.params = Sampling(0.8f, 0, 0.8f);
    wish.params.seed = i;
    wish.params.repetition_penalty = 1.8f;
    wish.params.frequency_penalty = i < 4 ? 0.7f : -1.0f;
    wish.params.presence_penalty = 0.4f;
    wish.params.logit_bias = {{3, 6.0f}, {9, -100.0f}, {1000, 5.0f}};
    const std::vector<TokenId> prompt = {1, 2, 3, 3};
    wish.history.AddPrompt(prompt);
    for (TokenId token : {4, 4, 3}) wish.history.AddGenerated(token);
    wish.masked = {static_cast<TokenId>(i), 7};
  }
  Compare(60, wishes);
}

TEST_F(SamplerKernelTest, TiesAtTheBorderOfTopPGoToTheLowestTokens) {
  // Eight equal tokens, of which half the mass is four.
  const std::vector<float> row(8, 1.0f);
  std::vector<Wish> wishes(40);
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    wishes[i].params = Sampling(1.0f, 0, 0.5f);
    wishes[i].params.seed = i;
  }
  const auto got = OnDevice(std::vector<std::vector<float>>(wishes.size(), row), wishes);
  EXPECT_EQ(*std::max_element(got.begin(), got.end()), 3);
  EXPECT_EQ(*std::min_element(got.begin(), got.end()), 0);
}

TEST_F(SamplerKernelTest, RowsThatAllowNoTokenFail) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> rows = {
      {1, std::numeric_limits<float>::quiet_NaN(), 2}, {kNothing, kNothing, kNothing}, {0, 1, 2}};
  std::vector<Wish> wishes(3);
  wishes[2].masked = {0, 1, 2};
  EXPECT_EQ(OnDevice(rows, wishes), (std::vector<TokenId>{-1, -1, -1}));
  std::vector<float> wide(9000, 1.0f);
  wide[8998] = std::numeric_limits<float>::quiet_NaN();
  for (const SamplingParams& params : {SamplingParams(), Sampling(1.0f, 5, 0.5f)}) {
    std::vector<Wish> one(1);
    one[0].params = params;
    EXPECT_EQ(OnDevice({wide}, one), std::vector<TokenId>{-1});
  }
}

}  // namespace
}  // namespace penstock::shard::cuda
