#include "shard/model/kv_groups.h"

#include <gmock/gmock.h>

#include <vector>

namespace penstock::shard {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kMaxPosition = 100;

struct Layer {
  std::uint32_t cache = 0;
  std::uint32_t window = 0;
};

Program ProgramOf(const std::vector<Layer>& layers) {
  Program program;
  for (const Layer& layer : layers) {
    if (layer.cache == program.caches.size()) program.caches.push_back({1, 4, 4});
    AttentionOp op;
    op.cache = layer.cache;
    op.window = layer.window;
    program.body.emplace_back(op);
  }
  AssignKvGroups(program, kMaxPosition);
  return program;
}

std::vector<std::uint32_t> GroupsOf(const Program& program) {
  std::vector<std::uint32_t> groups;
  for (const CacheShape& cache : program.caches) groups.push_back(cache.kv_group);
  return groups;
}

TEST(KvGroups, LayersWithAWindowAreGroup1) {
  const Program program = ProgramOf({{0, 8}, {1, 0}, {2, 8}});
  EXPECT_EQ(program.KvGroups(), 2u);
  EXPECT_EQ(program.kv_window, 8u);
  EXPECT_THAT(GroupsOf(program), ElementsAre(1, 0, 1));
}

TEST(KvGroups, AModelWithoutWindowsHasOneGroup) {
  const Program program = ProgramOf({{0, 0}, {1, 0}});
  EXPECT_EQ(program.KvGroups(), 1u);
  EXPECT_THAT(GroupsOf(program), ElementsAre(0, 0));
}

TEST(KvGroups, Group0IsEmptyIfAllLayersHaveAWindow) {
  const Program program = ProgramOf({{0, 12}, {1, 12}});
  EXPECT_EQ(program.KvGroups(), 2u);
  EXPECT_THAT(GroupsOf(program), ElementsAre(1, 1));
}

TEST(KvGroups, TheWidestWindowIsThatOfTheGroup) {
  EXPECT_EQ(ProgramOf({{0, 8}, {1, 0}, {2, 20}}).kv_window, 20u);
}

TEST(KvGroups, ASharedCacheKeepsWhatItsWidestReaderSees) {
  EXPECT_THAT(GroupsOf(ProgramOf({{0, 8}, {1, 8}, {0, 0}})), ElementsAre(0, 1));
  const Program program = ProgramOf({{0, 0}, {1, 8}, {1, 16}});
  EXPECT_THAT(GroupsOf(program), ElementsAre(0, 1));
  EXPECT_EQ(program.kv_window, 16u);
}

TEST(KvGroups, AWindowOfTheWholeContextIsNone) {
  EXPECT_EQ(ProgramOf({{0, kMaxPosition}, {1, 2 * kMaxPosition}}).KvGroups(), 1u);
  EXPECT_EQ(ProgramOf({{0, kMaxPosition - 1}, {1, 0}}).KvGroups(), 2u);
}

TEST(KvGroups, CanBeJoined) {
  Program program = ProgramOf({{0, 8}, {1, 0}});
  JoinKvGroups(program);
  EXPECT_EQ(program.KvGroups(), 1u);
  EXPECT_THAT(GroupsOf(program), ElementsAre(0, 0));
}

}  // namespace
}  // namespace penstock::shard
