// If a backend says that no step takes memory, then the first large step takes none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <vector>

#include "shard/backend/cpu/cpu_backend.h"
#include "tests/unit/shard/backend/cpu/random_model.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kTokens = 1024;
constexpr std::uint32_t kLogitRows = 64;

// Resident bytes of this process.
std::int64_t MiB() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE) >> 20;
}

TEST(StepMemory, IsTakenBeforeTheFirstStep) {
  const Shape shape = {.name = "wide",
                       .hidden = 512,
                       .layers = 1,
                       .heads = 8,
                       .kv_heads = 2,
                       .head_dim = 64,
                       .intermediate = 1024,
                       .vocabulary = 20'000};
  BuiltProgram built = ProgramOf(shape);
  CpuOptions options{.program = built.program,
                     .weights = RandomWeights(built.weights, DType::kBFloat16),
                     .dtype = DType::kBFloat16};
  options.threads = 2;
  auto backend = MakeCpuBackend(std::move(options));
  ASSERT_TRUE(backend.ok()) << backend.status();
  ASSERT_TRUE((*backend)->Prepare({kTokens, kTokens, kLogitRows, 0}, nullptr).ok());
  ASSERT_TRUE((*backend)->AllocateCache(kTokens / 16).ok());
  EXPECT_FALSE((*backend)->TakesMemoryInSteps());

  const std::vector<TokenId> tokens(kTokens, 7);
  std::vector<BlockId> blocks;
  for (std::uint32_t i = 0; i < kTokens / 16; ++i) blocks.emplace_back(i);
  RaggedSegment segment;
  segment.query_count = kTokens;
  segment.blocks = blocks;
  std::vector<std::uint32_t> logit_rows(kLogitRows);
  std::iota(logit_rows.begin(), logit_rows.end(), kTokens - kLogitRows);
  const std::int64_t before = MiB();
  ASSERT_TRUE((*backend)->Execute({tokens, {&segment, 1}, logit_rows}).ok());
  ASSERT_TRUE((*backend)->Logits(0, kLogitRows).ok());
  EXPECT_LE(MiB() - before, 3) << "MiB; scratch is about 20";
}

}  // namespace
}  // namespace penstock::shard
