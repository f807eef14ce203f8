// The facts of a rank after loading.
#include "shard/executor/model_rank.h"

#include <gmock/gmock.h>

#include <memory>
#include <utility>

#include "tests/unit/shard/executor/fake_backend.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

// While it reads the weights a backend may find that it cannot store them as planned.
TEST(ModelRank, ReportsTheWeightsOfTheBackendNotThePlannedOnes) {
  ModelRankOptions options;
  options.model.folder = testing_support::SourcePath("demo/model");
  options.grammars = false;
  options.weight_bytes = [](const Model&) -> absl::StatusOr<std::uint64_t> { return 4096; };
  options.make_backend = [](const Model& model,
                            const LoadProgress&) -> absl::StatusOr<std::unique_ptr<Backend>> {
    return std::make_unique<FakeBackend>(model.spec.vocabulary);
  };
  ModelRank engine(std::move(options));
  const absl::Status loaded = engine.Load([](const v1::LoadProgress&) {});
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(engine.Facts().weight_bytes(), 77u);
  EXPECT_EQ(engine.Facts().backend(), "fake");
}

TEST(ModelRank, RefusesACacheThatHoldsNoBlockBeforeItReadsWeights) {
  ModelRankOptions options;
  options.model.folder = testing_support::SourcePath("demo/model");
  options.kv = {.bytes = 1024};
  options.make_backend = [](const Model&,
                            const LoadProgress&) -> absl::StatusOr<std::unique_ptr<Backend>> {
    return absl::InternalError("the weights are read");
  };
  const absl::Status loaded = ModelRank(std::move(options)).Load([](const v1::LoadProgress&) {});
  EXPECT_TRUE(absl::IsResourceExhausted(loaded)) << loaded;
  EXPECT_THAT(std::string(loaded.message()),
              HasSubstr("--kv-cache-memory: 1.0 KiB for a rank; must be at least one block of"));
}

}  // namespace
}  // namespace penstock::shard
