// How much the int16 weight format changes the logits of a model, compared with rounding
// activations to bfloat16: docs/decisions/0035.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <utility>

#include "tests/unit/shard/backend/cpu/isa_switch.h"
#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

using Logits = std::vector<std::vector<float>>;

// Logits of random tokens, one after the other.
Logits Feed(ModelRunner& runner) {
  Logits logits;
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    const auto token = static_cast<TokenId>(random() % runner.model().spec.vocabulary);
    logits.push_back(runner.Step({{0, {token}}}).at(0));
  }
  return logits;
}

RunnerOptions Demo(const std::string& format) {
  RunnerOptions options;
  options.folder = testing_support::SourcePath("demo/model");
  options.backend = Runs::kCpu;
  options.dtype = DType::kBFloat16;
  options.weight_format = format;
  return options;
}

// Empty if this processor cannot compute so.
Logits LogitsOf(const char* isa, const std::string& format) {
  const IsaSwitch use(isa);
  const bool there =
      CheckCpuBackend({}, {.dtype = DType::kBFloat16, .weight_format = format}, 16).ok();
  auto runner = there ? ModelRunner::Open(Demo(format)) : nullptr;
  return runner == nullptr ? Logits() : Feed(*runner);
}

// The difference relative to the size of the second logits.
double Difference(const Logits& logits, const Logits& exact) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    for (std::size_t j = 0; j < exact[i].size(); ++j) {
      error += std::pow(double{logits[i][j]} - exact[i][j], 2);
      size += std::pow(double{exact[i][j]}, 2);
    }
  }
  return std::sqrt(error / size);
}

TEST(Int16Weights, ChangeLogitsLessThanActivationsOfBFloat16) {
  const Logits integers = LogitsOf("avx512", "int16");
  if (integers.empty()) GTEST_SKIP() << "this processor has no AVX512_VNNI";
  const Logits exact = LogitsOf("avx512", "plain");
  ASSERT_EQ(exact.size(), integers.size());
  const double ours = Difference(integers, exact);
  std::cout << "products in integers: " << ours << " of the logits\n";
  EXPECT_GT(ours, 0.0) << "the option does nothing";
  EXPECT_LT(ours, 2e-3);  // K and V, rounded to bfloat16, make most of it
  const Logits rounded = LogitsOf("avx512-bf16", "plain");
  if (rounded.empty()) GTEST_SKIP() << "this processor multiplies no pairs of bfloat16";
  const double rounding = Difference(rounded, exact);
  std::cout << "activations of bfloat16: " << rounding << " of the logits\n";
  EXPECT_LT(ours, 0.5 * rounding);
}

// Most that ranks may change, relative to the size of the logits.
struct RankLimit {
  const char* backend;  // what its name begins with
  double kv_bfloat16;   // with K and V in it
  double kv_float32;
};
constexpr RankLimit kRankLimits[] = {
    {"cpu/avx512-int16", 2e-3, 5e-4},
    // Another order of summation can round an activation the other way. The error is at most that
    // of the rounding itself, which is measured above and in the decision.
    {"cpu/avx512-bf16", 4.8e-3, 3.6e-3},
    // Products of float32: only K and V are rounded.
    {"cpu/avx512", 1e-3, 2e-6},
    {"cpu/avx2", 1e-3, 2e-6},
};

double RankLimitOf(const std::string& backend, KvType kv) {
  for (const RankLimit& limit : kRankLimits) {
    if (!backend.starts_with(limit.backend)) continue;
    return kv == KvType::kAuto ? limit.kv_bfloat16 : limit.kv_float32;
  }
  ADD_FAILURE() << backend << " has no limit";
  return 0;
}

void ExpectLittleChangeByRanks(const RunnerOptions& options) {
  const auto alone = ModelRunner::Open(options);
  ASSERT_NE(alone, nullptr);
  const double limit = RankLimitOf(alone->backend().Name(), options.kv_type);
  const Logits expected = Feed(*alone);
  for (const std::uint32_t world : {2u, 4u}) {
    OnRanks(options, world, [&](ModelRunner& runner) {
      const double difference = Difference(Feed(runner), expected);
      if (runner.model().part.rank != 0) return;
      std::cout << runner.backend().Name() << ", " << world << " ranks: " << difference << '\n';
      EXPECT_GT(difference, 0.0) << "nothing was divided";
      EXPECT_LT(difference, limit);
    });
  }
}

// Ranks divide K, so they have other groups and sums. The change is as large as that of rounding K,
// V and bfloat16 activations.
TEST(BFloat16, RanksChangeLogitsNoMoreThanRoundingDoes) {
  for (const std::string& isa : Isas()) {
    const IsaSwitch use(isa);
    std::string automatic;
    for (const std::string format : {"auto", "plain"}) {
      const auto name = CpuBackendName({.dtype = DType::kBFloat16, .weight_format = format});
      ASSERT_TRUE(name.ok()) << name.status();
      if (*name == std::exchange(automatic, *name)) continue;  // auto is plain here
      for (const KvType kv : {KvType::kAuto, KvType::kFloat32}) {
        RunnerOptions options = Demo(format);
        options.kv_type = kv;
        ExpectLittleChangeByRanks(options);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::shard
