// Checkpoints of 4-bit integers whose groups --quantize int4 keeps: the weights are those of the
// files, so logits differ from the expanded model's in transformers by the rounding of the inputs
// of products to 8 bits alone. Prints one line per variant.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shard/weights/weight_source.h"
#include "tests/unit/shard/backend/model_checkpoints.h"
#include "tests/unit/shard/backend/model_goldens.h"

namespace penstock::shard {
namespace {

// Of a logit, in the difference that int8 weights make: these have the same rounding of inputs, and
// round the expanded weights too.
constexpr float kOfInt8 = 1.0f;

std::vector<std::string> KeptVariants() {
  std::vector<std::string> names;
  for (const std::string& name : GoldenNames()) {
    if (name.ends_with("_kept")) names.push_back(name);
  }
  return names;
}

// How many matrices of products the model has, and how many of them the backend keeps.
struct Kept {
  std::size_t all = 0, kept = 0;
};
Kept CountKept(const Model& model) {
  const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
  Kept count;
  for (std::int32_t i = 0; i < source.Count(); ++i) {
    const WeightTarget& target = model.weight_plan.targets[static_cast<std::size_t>(i)];
    if (target.vector || target.name == "embedding") continue;
    ++count.all;
    if (source.HasInt4(i)) ++count.kept;
  }
  return count;
}

// As the shard does: rows are packed as they are read from the files.
absl::StatusOr<std::unique_ptr<Backend>> FromFiles(const Model& model, LoadedWeights weights) {
  const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
  CpuOptions options{model.program, std::move(weights), model.dtype};
  options.quantization = model.quantization;
  options.source = &source;
  return MakeCpuBackend(std::move(options));
}

class KeptInt4 : public testing::TestWithParam<std::string> {};

TEST_P(KeptInt4, LogitsAreThoseOfTheExpandedModelWithinTheBoundOfIntegers) {
  const ModelGolden golden = ReadModelGolden(GetParam());
  RunnerOptions options = OptionsOf(golden);
  options.backend = Runs::kCpu;
  options.make = FromFiles;
  options.quantization = Quantization::kInt4;
  auto runner = ModelRunner::Open(options);
  ASSERT_NE(runner, nullptr);
  const Kept kept = CountKept(runner->model());
  EXPECT_EQ(kept.kept, kept.all);
  std::vector<std::optional<float>> cells = {PrefillDifference(*runner, golden, kWholePrompt),
                                             PrefillDifference(*runner, golden, kShortChunk)};
  std::mutex mutex;
  float ranks = 0.0f;
  OnRanks(options, 2, [&](ModelRunner& rank) {
    const Kept own = CountKept(rank.model());
    const float difference = PrefillDifference(rank, golden, kWholePrompt);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(own.kept, own.all);
    ranks = Larger(ranks, difference);
  });
  cells.insert(cells.end(), {std::nullopt, ranks});
  options.quantization = Quantization::kInt8;
  auto control = ModelRunner::Open(options);
  ASSERT_NE(control, nullptr);
  const float int8 = PrefillDifference(*control, golden, kWholePrompt);
  PrintDifferences(golden, "int8", {int8});
  for (const std::optional<float>& cell : cells) EXPECT_LE(cell.value_or(0.0f), kOfInt8 * int8);
  EXPECT_EQ(*cells[0], *cells[1]);  // the same bits
  PrintDifferences(golden, "int4", cells);
}

INSTANTIATE_TEST_SUITE_P(Models, KeptInt4, testing::ValuesIn(KeptVariants()), [](const auto& info) {
  std::string name = info.param;
  return name.replace(name.find('-'), 1, "_");
});

}  // namespace
}  // namespace penstock::shard
