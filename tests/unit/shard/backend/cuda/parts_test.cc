#include "shard/backend/cuda/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::shard::cuda {
namespace {

TEST(CudaPartsTest, AllAreOnUnlessNamed) {
  const auto all = PartsWithout("");
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->graphs && all->tensor_cores && all->skinny_products && all->overlap);
  const auto some = PartsWithout("overlap,graphs");
  ASSERT_TRUE(some.ok());
  EXPECT_FALSE(some->graphs || some->overlap);
  EXPECT_TRUE(some->tensor_cores && some->skinny_products);
}

TEST(CudaPartsTest, AnUnknownNameIsNamed) {
  const auto parts = PartsWithout("graphs,grphs");
  EXPECT_EQ(parts.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(parts.status().message(), testing::HasSubstr("`grphs`"));
}

}  // namespace
}  // namespace penstock::shard::cuda
