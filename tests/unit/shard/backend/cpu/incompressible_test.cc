// Weights that do not fit the compressed format: how they are stored instead, what the log says,
// and what a later start knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "tests/unit/shard/backend/cpu/named_source.h"
#include "tests/unit/shard/backend/cpu/random_model.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard::cpu {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// Each matrix has a whole number of groups.
constexpr Shape kEven = {.name = "even",
                         .hidden = 256,
                         .layers = 2,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 14,
                         .intermediate = 512};
// None of its matrices is.
constexpr Shape kOdd = {.name = "odd",
                        .hidden = 54,
                        .layers = 2,
                        .heads = 3,
                        .kv_heads = 3,
                        .head_dim = 18,
                        .intermediate = 38};

BuiltProgram BuiltOf(const Shape& shape) { return ProgramOf(shape); }

class Incompressible : public testing::Test {
 protected:
  Incompressible() : kernels_(*FindKernels(*ChooseIsa(), DType::kBFloat16)) {}
  void SetUp() override {
    if (kernels_.formats[FormatId::kCompressed].gemm == nullptr) {
      GTEST_SKIP() << "no compressed weights on this processor";
    }
  }

  // Few of their upper bytes are alike.
  static LoadedWeights AnyBits(const BuiltProgram& built) {
    LoadedWeights weights = RandomWeights(built.weights, DType::kBFloat16);
    std::mt19937 random(3);
    for (const TensorView& view : weights.views) {
      auto* bits = static_cast<std::uint16_t*>(const_cast<void*>(view.data));
      for (std::int64_t i = 0; i < view.Elements(); ++i)
        bits[i] = static_cast<std::uint16_t>(random());
    }
    return weights;
  }

  // Also stores what is read and logged meanwhile in rows_read_ and log_.
  WeightStore Make(const BuiltProgram& built, const LoadedWeights& weights, FormatId format) {
    const NamedSource source(weights, "a model");
    WeightStore::Options options;
    options.source = &source;
    options.format = &FormatOf(format);
    options.cache_folder = folder_.path();
    options.cache_most = std::uint64_t{1} << 30;
    WorkerPool pool(2);
    testing::internal::CaptureStderr();
    auto store = WeightStore::Create(built.program, options, kernels_, pool);
    EXPECT_TRUE(store.ok()) << store.status();
    store->AwaitCache();
    log_ = testing::internal::GetCapturedStderr();
    rows_read_ = source.rows_read;
    return *std::move(store);
  }

  static void ExpectGiven(const WeightStore& store, const BuiltProgram& built,
                          const LoadedWeights& weights) {
    for (const Op& op : built.program.body) {
      const auto* linear = std::get_if<LinearOp>(&op);
      if (linear == nullptr) continue;
      const PackedMatrix& matrix = store.Matrix(linear->weight);
      EXPECT_EQ(matrix.format().id(), FormatId::kPlain);
      const TensorView& view = weights.views[static_cast<std::size_t>(linear->weight)];
      std::vector<float> row(matrix.inner());
      matrix.UnpackRow(1, row.data());
      for (std::size_t k = 0; k < row.size(); ++k) {
        const float given = ReadElement(view.data, matrix.inner() + k, DType::kBFloat16);
        ASSERT_EQ(std::memcmp(&row[k], &given, sizeof given), 0) << "row 1, K " << k;
      }
    }
  }

  const Kernels& kernels_;
  const TempFolder folder_;
  const BuiltProgram even_ = BuiltOf(kEven);
  std::uint64_t rows_read_ = 0;
  std::string log_;
};

TEST_F(Incompressible, WeightsStayPlainAndALaterStartDoesNotTryAgain) {
  const LoadedWeights weights = AnyBits(even_);
  const auto ExpectPlain = [&] {
    const WeightStore store = Make(even_, weights, FormatId::kCompressed);
    EXPECT_THAT(log_, HasSubstr("compressed; all are stored as plain"));
    EXPECT_EQ(store.format().id(), FormatId::kPlain);
    ExpectGiven(store, even_, weights);
  };
  ExpectPlain();
  EXPECT_GT(rows_read_, 0u);
  ExpectPlain();
  EXPECT_EQ(rows_read_, 0u) << "it tried again";
}

TEST_F(Incompressible, CachedPlainWeightsThatWereWantedSoAreNotUsed) {
  const LoadedWeights weights = RandomWeights(even_.weights, DType::kBFloat16);
  EXPECT_EQ(Make(even_, weights, FormatId::kPlain).format().id(), FormatId::kPlain);
  EXPECT_EQ(Make(even_, weights, FormatId::kCompressed).format().id(), FormatId::kCompressed);
  EXPECT_EQ(Make(even_, weights, FormatId::kCompressed).format().id(), FormatId::kCompressed);
  EXPECT_EQ(rows_read_, 0u);
  EXPECT_THAT(log_, Not(HasSubstr("stored as plain")));
}

TEST_F(Incompressible, AModelWithoutAFittingMatrixIsPlain) {
  const BuiltProgram odd = BuiltOf(kOdd);
  const LoadedWeights weights = RandomWeights(odd.weights, DType::kBFloat16);
  const WeightStore store = Make(odd, weights, FormatId::kCompressed);
  EXPECT_EQ(store.format().id(), FormatId::kPlain);
  EXPECT_THAT(log_, HasSubstr("compressed; all are stored as plain"));
  ExpectGiven(store, odd, weights);
}

TEST_F(Incompressible, TheBackendNamesTheFormatInUse) {
  const BuiltProgram odd = BuiltOf(kOdd);
  const CpuTypes types{.dtype = DType::kBFloat16, .weight_format = "compressed"};
  const struct {
    const BuiltProgram& built;
    LoadedWeights weights;
    bool tries;
    bool compressed;
  } cases[] = {
      {even_, RandomWeights(even_.weights, DType::kBFloat16), true, true},
      {even_, AnyBits(even_), true, false},
      {odd, RandomWeights(odd.weights, DType::kBFloat16), false, false},
  };
  for (const auto& [built, weights, tries, compressed] : cases) {
    const LoadedSource source(weights.views);
    const std::string described = *DescribeCpuBackend(built.program, source, types);
    EXPECT_EQ(described.find("compressed, or ") != std::string::npos, tries) << described;
    CpuOptions options{.program = built.program, .weights = {}, .dtype = types.dtype};
    options.source = &source;
    options.weight_format = types.weight_format;
    const auto backend = MakeCpuBackend(std::move(options));
    ASSERT_TRUE(backend.ok()) << backend.status();
    EXPECT_EQ((*backend)->Name(), compressed ? "cpu/avx512-bf16-compressed" : "cpu/avx512-bf16");
    const CpuTypes kept{.dtype = types.dtype, .weight_format = compressed ? "compressed" : "plain"};
    EXPECT_EQ((*backend)->MemoryBytes(), *CpuWeightBytes(built.program, source, kept));
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
