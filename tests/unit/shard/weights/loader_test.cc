// Loading of slices of stored tensors into targets.
#include "shard/weights/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/status.h"
#include "shard/weights/convert.h"
#include "shard/weights/safetensors_writer.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "m" [4, 6] with m[r][c] = 10 r + c, "n" [2, 6] of hundreds, "v" [6] of negative numbers.
class Loading : public testing::Test {
 protected:
  void SetUp() override { WriteCheckpoint(DType::kFloat32); }

  void WriteCheckpoint(DType dtype) {
    std::vector<float> values;
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 6; ++c) values.push_back(static_cast<float>(10 * r + c));
    }
    for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(100 + i));
    for (int i = 0; i < 6; ++i) values.push_back(static_cast<float>(-1 - i));
    std::vector<std::byte> stored(values.size() * DTypeBytes(dtype));
    ConvertElements(values.data(), DType::kFloat32, stored.data(), dtype, values.size());
    SafetensorsWriter writer(folder_ / "model.safetensors",
                             {{"m", dtype, {4, 6}}, {"n", dtype, {2, 6}}, {"v", dtype, {6}}});
    writer.Append(stored);
    ASSERT_TRUE(writer.Finish().ok());
    auto checkpoint = Checkpoint::Open(folder_.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_ = std::move(*checkpoint);
  }

  std::vector<float> Load(const WeightTarget& target, DType dtype = DType::kFloat32) {
    const WeightPlan plan{{target}};
    EXPECT_TRUE(CheckParts(checkpoint_, plan).ok()) << CheckParts(checkpoint_, plan);
    auto weights = LoadWeights(checkpoint_, plan, dtype, nullptr);
    EXPECT_TRUE(weights.ok()) << weights.status();
    if (!weights.ok()) return {};
    const TensorView& view = weights->views.at(0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 64, 0u);
    std::vector<float> values(static_cast<std::size_t>(view.Elements()));
    ConvertElements(view.data, dtype, values.data(), DType::kFloat32, values.size());
    return values;
  }

  TempFolder folder_;
  Checkpoint checkpoint_;
};

TEST_F(Loading, JoinsRowsOfTwoMatrices) {
  EXPECT_THAT(
      Load(
          {"t", 3, 6, false, {{"m", {4, 6}, {1, 2}, {0, 6}, 0}, {"n", {2, 6}, {1, 1}, {0, 6}, 2}}}),
      ElementsAre(10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 106, 107, 108, 109, 110, 111));
}

TEST_F(Loading, LoadsSomeColumnsOfRows) {
  EXPECT_THAT(Load({"t", 4, 2, false, {{"m", {4, 6}, {0, 4}, {3, 2}, 0}}}),
              ElementsAre(3, 4, 13, 14, 23, 24, 33, 34));
}

TEST_F(Loading, VectorsAreSlicedByRows) {
  EXPECT_THAT(Load({"t", 2, 1, true, {{"v", {6}, {4, 2}, {0, 1}, 0}}}), ElementsAre(-5, -6));
}

TEST_F(Loading, UncoveredRowsAreZero) {
  EXPECT_THAT(Load({"t", 2, 6, false, {{"n", {2, 6}, {1, 1}, {0, 6}, 0}}}),
              ElementsAre(106, 107, 108, 109, 110, 111, 0, 0, 0, 0, 0, 0));
}

TEST_F(Loading, ConvertsEveryStoredType) {
  for (DType stored : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    WriteCheckpoint(stored);
    for (DType wanted : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      EXPECT_THAT(Load({"t", 1, 2, false, {{"m", {4, 6}, {3, 1}, {1, 2}, 0}}}, wanted),
                  ElementsAre(31, 32));
      EXPECT_THAT(Load({"t", 6, 1, true, {{"v", {6}, {0, 6}, {0, 1}, 0}}}, wanted),
                  ElementsAre(-1, -2, -3, -4, -5, -6));
    }
  }
}

TEST_F(Loading, ReportsProgressFromNothingToAll) {
  const WeightPlan plan{{{"t", 4, 2, false, {{"m", {4, 6}, {0, 4}, {3, 2}, 0}}},
                         {"u", 6, 1, true, {{"v", {6}, {0, 6}, {0, 1}, 0}}}}};
  std::vector<std::uint64_t> seen;
  const auto progress = [&seen](std::string_view stage, std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(stage, "weights");
    EXPECT_EQ(total, 32u + 24u);
    seen.push_back(done);
    return true;
  };
  ASSERT_TRUE(LoadWeights(checkpoint_, plan, DType::kFloat32, progress).ok());
  EXPECT_THAT(seen, ElementsAre(0, 32, 56));
}

TEST_F(Loading, ChecksNameShapeAndUse) {
  const auto part = [](const char* name, std::vector<std::uint64_t> shape) {
    return WeightPlan{{{"t", 1, 1, false, {{name, std::move(shape), {0, 1}, {0, 1}, 0}}}}, {}, {}};
  };
  EXPECT_EQ(Message(CheckParts(checkpoint_, part("w", {1, 2}))),
            "tensor w is missing; config.json asks for [1, 2]");
  EXPECT_EQ(Message(CheckParts(checkpoint_, part("m", {6, 4}))),
            "model.safetensors: tensor m has shape [4, 6]; config.json asks for [6, 4]");
  WeightPlan plan = part("m", {4, 6});
  plan.ignored_prefixes = {"v"};
  EXPECT_EQ(Message(CheckAllConsumed(checkpoint_, plan)),
            "model.safetensors: tensor n [2, 6] has no place in this model type");
  plan.ignored_suffixes = {"n"};
  EXPECT_TRUE(CheckAllConsumed(checkpoint_, plan).ok());
}

TEST_F(Loading, RefusesTypesThatItDoesNotLoad) {
  const std::string header = R"({"i": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}})";
  folder_.Write("model.safetensors", std::string(1, static_cast<char>(header.size())) +
                                         std::string(7, '\0') + header + "xxxx");
  auto checkpoint = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const WeightPlan plan{{{"t", 1, 1, true, {{"i", {1}, {0, 1}, {0, 1}, 0}}}}};
  EXPECT_EQ(Message(CheckParts(*checkpoint, plan)),
            "model.safetensors: tensor i has dtype I32; Penstock loads F32, BF16 and F16");
}

TEST_F(Loading, NamesAFileThatIsTruncatedWhileLoading) {
  std::filesystem::resize_file(folder_ / "model.safetensors",
                               std::filesystem::file_size(folder_ / "model.safetensors") - 4);
  const WeightPlan plan{{{"u", 6, 1, true, {{"v", {6}, {0, 6}, {0, 1}, 0}}}}};
  const auto weights = LoadWeights(checkpoint_, plan, DType::kFloat32, nullptr);
  EXPECT_TRUE(absl::IsDataLoss(weights.status()));
  EXPECT_THAT(Message(weights.status()), HasSubstr("model.safetensors"));
}

}  // namespace
}  // namespace penstock::shard
