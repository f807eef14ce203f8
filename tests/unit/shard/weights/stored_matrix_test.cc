// Matrices that a checkpoint stores quantised, or as parts of a stack.
#include "shard/weights/stored_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/status.h"
#include "shard/weights/loader.h"
#include "tests/unit/shard/weights/stored_tensors.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kBlocksOfTwo[] = R"({"quant_method": "fp8", "weight_block_size": [2, 2]})";
constexpr char kFp8OfMatrices[] = R"({"quant_method": "fp8", "weight_block_size": null})";
constexpr char kMxfp4[] = R"({"quant_method": "mxfp4"})";

class StoredMatrices : public testing::Test {
 protected:
  void Write(const std::vector<Stored>& tensors) { checkpoint_ = OpenStored(folder_, tensors); }

  std::string ErrorOf(const WeightPlan& plan) { return Message(CheckParts(checkpoint_, plan)); }

  std::vector<float> Load(const WeightPlan& plan) {
    EXPECT_EQ(ErrorOf(plan), "");
    EXPECT_TRUE(CheckAllConsumed(checkpoint_, plan).ok()) << CheckAllConsumed(checkpoint_, plan);
    auto weights = LoadWeights(checkpoint_, plan, DType::kFloat32, nullptr);
    EXPECT_TRUE(weights.ok()) << weights.status();
    if (!weights.ok()) return {};
    const auto* values = static_cast<const float*>(weights->views.at(0).data);
    return {values, values + weights->views.at(0).Elements()};
  }

  TempFolder folder_;
  Checkpoint checkpoint_;
};

// E4M3: 0x38 is 1, 0x40 is 2, 0xb8 is -1, 0x01 is 2^-9, 0x7e is 448.
const Stored kFp8Values{"m", "F8_E4M3", "[3, 3]",
                        Bytes({0x38, 0x40, 0xb8, 0x38, 0x38, 0x38, 0x01, 0x7e, 0x00})};

TEST_F(StoredMatrices, Fp8ValuesAreMultipliedByTheScaleOfTheirBlock) {
  Write({kFp8Values, {"m_scale_inv", "F32", "[2, 2]", Floats({2, 3, 512, 7})}});
  EXPECT_THAT(Load(PlanOf({"m", {3, 3}, {0, 3}, {0, 3}, 0}, kBlocksOfTwo)),
              ElementsAre(2, 4, -3, 2, 2, 3, 1, 448 * 512, 0));
}

TEST_F(StoredMatrices, Fp8SlicesBeginAnywhereInABlock) {
  Write({kFp8Values, {"m_scale_inv", "F8_E8M0", "[2, 2]", Bytes({128, 126, 127, 130})}});
  EXPECT_THAT(Load(PlanOf({"m", {3, 3}, {1, 2}, {1, 2}, 0}, kBlocksOfTwo)),
              ElementsAre(2, 0.5, 448, 0));
}

TEST_F(StoredMatrices, Fp8HasOneScaleForAllOrOneForEachRow) {
  Write({kFp8Values, {"m_scale_inv", "F32", "[]", Floats({3})}});
  EXPECT_THAT(Load(PlanOf({"m", {3, 3}, {0, 3}, {1, 2}, 0}, kFp8OfMatrices)),
              ElementsAre(6, -3, 3, 3, 448 * 3, 0));
  Write({kFp8Values, {"m_scale", "F32", "[3, 1]", Floats({3, 5, 512})}});
  const std::vector<float> by_row = {3, 6, -3, 5, 5, 5, 1, 448 * 512, 0};
  EXPECT_EQ(Load(PlanOf({"m", {3, 3}, {0, 3}, {0, 3}, 0}, kFp8OfMatrices)), by_row);
  EXPECT_EQ(Load(PlanOf({"m", {3, 3}, {0, 3}, {0, 3}, 0}, R"({"quant_method": "fbgemm_fp8"})")),
            by_row);
}

// The scales that activations would have are not of another part of the model.
TEST_F(StoredMatrices, Fp8MayHaveStaticScalesOfActivations) {
  Write({{"m.weight", "F8_E4M3", "[1, 2]", Bytes({0x38, 0x40})},
         {"m.weight_scale", "BF16", "[1]", Bytes({0x00, 0x40})},
         {"m.input_scale", "F32", "[1]", Floats({7})}});
  EXPECT_THAT(Load(PlanOf({"m.weight", {1, 2}, {0, 1}, {0, 2}, 0},
                          R"({"quant_method": "fp8", "activation_scheme": "static"})")),
              ElementsAre(2, 4));
}

TEST_F(StoredMatrices, AModuleThatIsNotConvertedMustBePlain) {
  constexpr char kLists[] =
      R"({"quant_method": "fp8", "modules_to_not_convert": ["a.*.m"], "ignored_layers": ["b"]})";
  Write({{"a.0.m.weight", "F8_E4M3", "[1, 1]", Bytes({0x38})},
         {"a.0.mm.weight", "F32", "[1, 1]", Floats({3})},
         {"b.weight", "BF16", "[1, 1]", Bytes({0x00, 0x40})}});
  EXPECT_THAT(ErrorOf(PlanOf({"a.0.m.weight", {1, 1}, {0, 1}, {0, 1}, 0}, kLists)),
              HasSubstr("tensor a.0.m.weight has dtype F8_E4M3; Penstock loads F32, BF16 and F16 "
                        "here: config.json says it is not quantised"));
  EXPECT_EQ(ErrorOf(PlanOf({"b.weight", {1, 1}, {0, 1}, {0, 1}, 0}, kLists)), "");
  EXPECT_EQ(ErrorOf(PlanOf({"a.0.mm.weight", {1, 1}, {0, 1}, {0, 1}, 0}, kLists)), "");
}

TEST_F(StoredMatrices, Fp8NeedsScalesAndABlockSize) {
  Write({kFp8Values});
  EXPECT_THAT(ErrorOf(PlanOf({"m", {3, 3}, {0, 3}, {0, 3}, 0}, kBlocksOfTwo)),
              HasSubstr("tensor m_scale_inv is missing; config.json asks for [2, 2]"));
  EXPECT_THAT(ErrorOf(PlanOf({"m", {3, 3}, {0, 3}, {0, 3}, 0})),
              HasSubstr("tensor m has dtype F8_E4M3; Penstock loads it if config.json has a "
                        "`quantization_config` that fits"));
}

// Two matrices of 1 x 32. E2M1: 2 is 1, 7 is 6, 10 is -1.
TEST_F(StoredMatrices, Mxfp4ValuesAreMultipliedByAPowerOfTwo) {
  std::vector<int> blocks(32, 0x22);
  blocks[16] = 0x7a;
  Write({{"m_blocks", "U8", "[2, 1, 1, 16]", Bytes(blocks)},
         {"m_scales", "U8", "[2, 1, 1]", Bytes({127, 129})}});
  WeightPart part{"m", {1, 32}, {0, 1}, {0, 3}, 0, true};
  part.stack = 2;
  part.matrix = 1;
  EXPECT_THAT(Load(PlanOf(part, kMxfp4)), ElementsAre(-4, 24, 4));
}

TEST_F(StoredMatrices, Mxfp4NeedsScalesOfTheRightShape) {
  Write({{"m_blocks", "U8", "[1, 1, 16]", Bytes(std::vector<int>(16, 0))},
         {"m_scales", "U8", "[1, 2]", Bytes({127, 127})}});
  EXPECT_THAT(ErrorOf(PlanOf({"m", {1, 32}, {0, 1}, {0, 32}, 0}, kMxfp4)),
              HasSubstr("tensor m_scales has shape [1, 2]; config.json asks for [1, 1]"));
}

TEST_F(StoredMatrices, RowsThatAlternateAreReadFromAStack) {
  Write({{"m", "F32", "[2, 4]", Floats({0, 1, 2, 3, 10, 11, 12, 13})},
         {"w", "F32", "[1, 4, 2]", Floats({0, 1, 10, 11, 20, 21, 30, 31})}});
  WeightPart bias{"m", {4}, {1, 2}, {0, 1}, 0};
  bias.stack = 2;
  bias.matrix = 1;
  bias.row_step = 2;
  WeightPart matrix{"w", {4, 2}, {1, 2}, {0, 2}, 0};
  matrix.stack = 1;
  matrix.row_step = 2;
  WeightPlan plan = PlanOf(bias);
  plan.targets.push_back(PlanOf(matrix).targets.front());
  EXPECT_THAT(Load(plan), ElementsAre(11, 13));
  auto weights = LoadWeights(checkpoint_, plan, DType::kFloat32, nullptr);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto* values = static_cast<const float*>(weights->views.at(1).data);
  EXPECT_THAT(std::vector<float>(values, values + 4), ElementsAre(10, 11, 30, 31));
}

TEST_F(StoredMatrices, OtherTypesAreRefusedByName) {
  Write({{"m", "I8", "[1, 2]", Bytes({1, 2})}});
  EXPECT_THAT(ErrorOf(PlanOf({"m", {1, 2}, {0, 1}, {0, 2}, 0})),
              HasSubstr("tensor m has dtype I8; Penstock loads F32, BF16 and F16"));
}

}  // namespace
}  // namespace penstock::shard
