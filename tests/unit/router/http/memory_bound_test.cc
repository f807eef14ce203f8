#include "router/http/memory_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "router/http/tls_context.h"

namespace penstock::router {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

TEST(MemoryBoundTest, IsTheSumOfTheManual) {
  HttpOptions http;
  http.max_connections = 1000;
  http.limits.head_bytes = 16 * kKiB;
  http.pipelined_bytes = 64 * kKiB;
  http.stream_buffer = 256 * kKiB;
  http.body_memory = 100 * kMiB;
  http.limits.body_bytes = 2 * kMiB;
  const MemoryTerms terms{.resident = 40 * kMiB,
                          .requests = 128,
                          .max_total_tokens = 4096,
                          .text_threads = 2,
                          .cache_blocks = 2048};
  const MemoryBound bound = BoundMemory(http, terms);
  EXPECT_EQ(bound.base, 50 * kMiB + 64 * kMiB);
  EXPECT_EQ(bound.connections, 1000 * (16 + 64 + 512 + 96) * kKiB);
  EXPECT_EQ(bound.bodies, 300 * kMiB);
  EXPECT_EQ(bound.requests, 128 * (32 * kKiB + 4096 * 256));
  EXPECT_EQ(bound.tokenizing, 512 * kMiB);
  EXPECT_EQ(bound.index, kMiB);
  EXPECT_EQ(bound.total(), bound.base + bound.connections + bound.bodies + bound.requests +
                               bound.tokenizing + bound.index);
  EXPECT_THAT(bound.Describe(), ::testing::StartsWith("40.0 MiB now; at most 1.7 GiB if every "
                                                      "limit is reached at once. "));
  EXPECT_THAT(bound.DescribeTerms(), ::testing::StartsWith("base 114.0 MiB + connections "));
  EXPECT_THAT(bound.Describe(),
              ::testing::EndsWith("The largest part, connections, is set by the limit of "
                                  "connections"));
  MemoryBound large = bound;
  large.tokenizing = 4096 * kMiB;
  EXPECT_THAT(large.Describe(), ::testing::HasSubstr("tokenizing, is set by --payload-limit"));
}

TEST(MemoryBoundTest, CountsTheBuffersOfTls) {
  HttpOptions http;
  const std::uint64_t plain = BoundMemory(http, {}).connections;
  http.tls = std::make_shared<TlsKeeper>(nullptr);
  EXPECT_EQ(BoundMemory(http, {}).connections - plain, http.max_connections * 96 * kKiB);
}

}  // namespace
}  // namespace penstock::router
