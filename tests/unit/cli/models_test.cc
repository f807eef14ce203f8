#include "cli/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/temp_folder.h"

namespace penstock::cli {
namespace {

const std::string kCommit(40, 'a');

TEST(ModelsTest, ListsTheModelsOfACache) {
  const TempFolder cache;
  cache.Write("models--org--b/refs/main", kCommit);
  cache.Write("models--org--b/snapshots/" + kCommit + "/config.json", "{}");
  cache.Write("models--org--b/blobs/x", "12345");
  cache.Write("models--a/blobs/y", "");
  cache.Write("datasets--org--c/blobs/z", "");
  const std::vector<CachedModel> models = ListCache(cache.path());
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[0].folder, "");
  EXPECT_EQ(models[1].name, "org/b");
  EXPECT_EQ(models[1].folder, cache / ("models--org--b/snapshots/" + kCommit));
  EXPECT_EQ(models[1].bytes, 5u);
}

TEST(ModelsTest, ACacheThatIsMissingIsEmpty) { EXPECT_TRUE(ListCache("/no/such/cache").empty()); }

}  // namespace
}  // namespace penstock::cli
