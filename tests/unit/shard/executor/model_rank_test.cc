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
  testing::internal::CaptureStderr();
  const absl::Status loaded = engine.Load([](const v1::LoadProgress&) {});
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(engine.Facts().weight_bytes(), 77u);
  EXPECT_EQ(engine.Facts().backend(), "fake");
  EXPECT_THAT(log, HasSubstr("loaded 77 B of weights"));
}

}  // namespace
}  // namespace penstock::shard
