// The matrix product of every instruction set that this processor has: right, and the same bits
// for any number of rows and any division among threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "shard/backend/cpu/kernels.h"
#include "tests/unit/shard/backend/cpu/gemm_problem.h"
#include "tests/unit/shard/backend/cpu/planted_gemm.h"

namespace penstock::shard::cpu {
namespace {

TEST(Gemm, GivesTheProductAtAnySize) {
  for (const Case& kind : AllCases()) {
    for (std::size_t inner : {1u, 2u, 7u, 64u, 601u}) {
      for (std::size_t outputs : {1u, 15u, 16u, 40u, 65u, 130u}) {
        const Problem problem(kind, 13, inner, outputs, false);
        const auto out = Multiply(problem, Plain(kind), 0, 13, 2);
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], problem.Dot(i / outputs, i % outputs), 2e-4)
              << kind.Name() << ", K " << inner << ", N " << outputs << ", element " << i;
        }
      }
    }
  }
}

TEST(Gemm, AddsToTheOutput) {
  for (const Case& kind : AllCases()) {
    const Problem problem(kind, 7, 50, 33, false);
    const auto add = [&kind](GemmArgs args) {
      args.epilogue = Epilogue::kAdd;  // Multiply fills with -1
      kind.Gemm(args);
    };
    const auto sum = Multiply(problem, add, 0, 7, 1);
    const auto plain = Multiply(problem, Plain(kind), 0, 7, 1);
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], plain[i] - 1.0f);
  }
}

TEST(Gemm, GatesWithSilu) {
  for (const Case& kind : AllCases()) {
    // Rounding is the backend tests' business.
    if (kind.kernels.activation != DType::kFloat32) continue;
    const std::size_t outputs = 43;
    const Problem problem(kind, 9, 70, outputs, true);
    const auto gate = [&kind](GemmArgs args) {
      args.epilogue = Epilogue::kGate;
      kind.Gemm(args);
    };
    const auto out = Multiply(problem, gate, 0, 9, 3);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double x = problem.Dot(i / outputs, i % outputs);
      const double up = problem.Dot(i / outputs, outputs + i % outputs);
      ASSERT_NEAR(out[i], x / (1 + std::exp(-x)) * up, 1e-4) << kind.Name() << " " << i;
    }
  }
}

TEST(Gemm, ActivatesWithGelu) {
  for (const Case& kind : AllCases()) {
    if (kind.kernels.activation != DType::kFloat32) continue;
    const std::size_t outputs = 43;
    Problem problem(kind, 9, 70, outputs, false);
    for (std::size_t i = 0; i < outputs; ++i) {  // far values on both sides
      problem.bias[i] *= 4;
    }
    problem.matrix.PackBias(problem.bias.data(), problem.packed_bias.data());
    for (const Activation activation : {Activation::kGelu, Activation::kGeluTanh}) {
      const auto activate = [&kind, activation](GemmArgs args) {
        args.epilogue = Epilogue::kActivate;
        args.activation = activation;
        kind.Gemm(args);
      };
      const auto out = Multiply(problem, activate, 0, 9, 3);
      const auto plain = Multiply(problem, Plain(kind), 0, 9, 1);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const double x = plain[i];
        const double phi = activation == Activation::kGelu
                               ? std::erf(x / std::sqrt(2.0))
                               : std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
        ASSERT_NEAR(out[i], 0.5 * x * (1 + phi), 2e-6) << kind.Name() << " " << x;
      }
    }
  }
}

TEST(Gemm, TheNumberOfRowsAndThreadsChangesNoBit) {
  for (const Case& kind : AllCases()) {
    // Longer than one block of K, so that partial sums are stored and taken up again.
    const Problem problem(kind, 512, 1100, 72, false);
    EXPECT_EQ(DifferingBits(problem, Plain(kind)), 0u) << kind.Name();
  }
}

// Rows so long that few of them go through the panels together, and K of several blocks of int8.
TEST(Gemm, LongRowsChangeNoBit) {
  for (const Case& kind : AllCases()) {
    const Problem problem(kind, 64, 4500, 40, false);
    EXPECT_EQ(DifferingBits(problem, Plain(kind)), 0u) << kind.Name();
  }
}

// How many blocks of a compressed matrix have patches, and how many are in the overflow.
struct Blocks {
  std::size_t patched = 0;
  std::size_t raw = 0;
};
Blocks CountBlocks(const PackedMatrix& matrix) {
  Blocks blocks;
  const std::size_t panel_bytes = matrix.Bytes() / matrix.panels();
  for (std::size_t panel = 0; panel < matrix.panels(); ++panel) {
    for (std::size_t at = 0; at < panel_bytes; at += CompressedBytes(kPlainBlockBytes)) {
      CompressedHeader header;
      std::memcpy(&header, matrix.data() + panel * panel_bytes + at, sizeof header);
      blocks.raw += header.patches == kRawBlock ? 1 : 0;
      blocks.patched += header.patches != kRawBlock && header.patches > 0 ? 1 : 0;
    }
  }
  return blocks;
}

// One of `strange` weights has random bits.
void ExpectBitsOfPlainWeights(const Kernels& kernels, std::size_t inner, std::size_t strange) {
  SCOPED_TRACE("K " + std::to_string(inner) + ", one strange weight of " + std::to_string(strange));
  const Case as_compressed{kernels, FormatId::kCompressed};
  const Case as_given{kernels, FormatId::kPlain};
  Problem compressed(as_compressed, 40, inner, 200, false);
  Problem plain(as_given, 40, inner, 200, false);
  ASSERT_EQ(compressed.matrix.format().id(), FormatId::kCompressed);
  std::mt19937 random(11);
  for (std::uint16_t& weight : compressed.weight_bits) {
    if (random() % strange != 0) continue;
    // Without the largest exponents: a sum that is infinite would hide other errors.
    weight = static_cast<std::uint16_t>(random() % 0x6000 | random() % 2 << 15);
  }
  compressed.Pack(compressed.weight_bits.data());
  plain.Pack(compressed.weight_bits.data());
  const Blocks blocks = CountBlocks(compressed.matrix);
  if (strange > 1000) {
    EXPECT_GT(blocks.patched, 0u);
  } else {
    EXPECT_GT(blocks.raw, 0u);
  }
  for (const std::size_t rows : {1u, 2u, 6u, 7u, 12u, 13u, 16u, 25u, 40u}) {
    for (const std::size_t threads : {1u, 3u}) {
      const auto ours = Multiply(compressed, Plain(as_compressed), 0, rows, threads);
      const auto given = Multiply(plain, Plain(as_given), 0, rows, threads);
      ASSERT_EQ(std::memcmp(ours.data(), given.data(), given.size() * sizeof(float)), 0)
          << rows << " rows, " << threads << " threads";
    }
  }
}

TEST(Gemm, CompressedWeightsGiveTheBitsOfPlainOnes) {
  for (const Case& kind : AllCases()) {
    if (kind.format != FormatId::kCompressed) continue;
    for (const std::size_t inner : {128u, 580u, 1100u}) {
      for (const std::size_t strange : {1200u, 200u}) {
        ExpectBitsOfPlainWeights(kind.kernels, inner, strange);
      }
    }
  }
}

// Sums of integers are exact, so only the order of the groups matters, which all keep.
void ExpectTheSameBitsOnEveryInstructionSet(FormatId format) {
  std::vector<float> first;
  for (const Case& kind : AllCases()) {
    if (kind.format != format || kind.kernels.weight != DType::kFloat32) continue;
    const Problem problem(kind, 20, 1100, 72, false);
    const std::vector<float> out = Multiply(problem, Plain(kind), 0, 20, 1);
    if (first.empty()) first = out;
    EXPECT_EQ(std::memcmp(out.data(), first.data(), out.size() * sizeof(float)), 0) << kind.Name();
  }
  EXPECT_FALSE(first.empty());
}

// A product of inputs that are rounded to 8 bits in groups of 32, beside that of inputs as given.
TEST(Gemm, InputsOfInt4AddAnErrorBelowOnePercent) {
  for (const Case& kind : AllCases()) {
    if (kind.format != FormatId::kInt4) continue;
    constexpr std::size_t kRows = 8, kInner = 1100, kOutputs = 72;
    Problem problem(kind, kRows, kInner, kOutputs, false);
    const std::vector<float> out = Multiply(problem, Plain(kind), 0, kRows, 1);
    for (std::size_t i = 0; i < problem.input.size(); ++i) {
      problem.input[i] = ReadElement(problem.input_bits.data(), i, DType::kBFloat16);
    }
    double error = 0, all = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double exact = problem.Dot(i / kOutputs, i % kOutputs);
      const double product = exact - problem.bias[i % kOutputs];
      error += (out[i] - exact) * (out[i] - exact);
      all += product * product;
    }
    EXPECT_LT(std::sqrt(error / all), 0.008) << kind.Name();
  }
}

TEST(Gemm, Int4HasTheSameBitsOnEveryInstructionSet) {
  ExpectTheSameBitsOnEveryInstructionSet(FormatId::kInt4);
}

TEST(Gemm, Int8HasTheSameBitsOnEveryInstructionSet) {
  ExpectTheSameBitsOnEveryInstructionSet(FormatId::kInt8);
}

TEST(Gemm, AValueThatIsNotFiniteAffectsOnlyItsRow) {
  for (const Case& kind : AllCases()) {
    if (kind.plain() || kind.kernels.activation != DType::kFloat32) continue;
    for (float bad : {std::nanf(""), INFINITY, -INFINITY}) {
      Problem problem(kind, 3, 300, 20, false);
      problem.input[problem.stride + 170] = bad;
      problem.QuantizeRow(1);
      const auto out = Multiply(problem, Plain(kind), 0, 3, 1);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(std::isnan(out[i]), i / 20 == 1) << kind.Name() << " " << i;
      }
    }
  }
}

// Rows that are all zero, and values whose inverse would overflow.
TEST(Gemm, RowsOfZerosGiveTheBias) {
  for (const Case& kind : AllCases()) {
    if (kind.plain() || kind.kernels.activation != DType::kFloat32) continue;
    Problem problem(kind, 1, 300, 20, false);
    for (float tiny : {0.0f, 1e-40f, 1e-36f}) {
      std::fill_n(problem.input.begin(), 300, tiny);
      problem.QuantizeRow(0);
      const auto out = Multiply(problem, Plain(kind), 0, 1, 1);
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], problem.bias[i], 1e-30);
    }
  }
}

// The tests above must notice what they are there for.
TEST(Gemm, AnOrderThatDependsOnTheNumberOfRowsIsNoticed) {
  for (const Case& kind : AllCases()) {
    const Problem problem(kind, 8, 1100, 72, false);
    const auto planted = [&kind](const GemmArgs& args) {
      SplitKOfOneRow(kind.kernels, FormatOf(kind.format), args);
    };
    EXPECT_GT(DifferingBits(problem, planted), 0u) << kind.Name();
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
