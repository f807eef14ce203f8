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

TEST(MemoryBoundTest, TheLimitsFollowWhatTheProcessMayTake) {
  HttpOptions http;
  http.limits.body_bytes = 16 * kMiB;
  const auto fitted = [&](std::uint64_t bytes) {
    HttpOptions options = http;
    FitMemory(options, {bytes, "ulimit -v", true});
    return options;
  };
  EXPECT_EQ(fitted(0).body_memory, 1024 * kMiB);  // not known
  EXPECT_EQ(fitted(16384 * kMiB).max_connections, 4096u);
  EXPECT_EQ(fitted(16384 * kMiB).body_memory, 1024 * kMiB);
  const HttpOptions small = fitted(1024 * kMiB);
  EXPECT_EQ(small.body_memory, 128 * kMiB);
  EXPECT_LE(BoundMemory(small, {}).connections, 256 * kMiB);
  EXPECT_LE(BoundMemory(small, {}).bodies, 384 * kMiB);
  // A body of the largest size still fits, and a few connections do.
  EXPECT_EQ(fitted(64 * kMiB).body_memory, 16 * kMiB);
  EXPECT_EQ(fitted(64 * kMiB).max_connections, 128u);
}

TEST(MemoryBoundTest, WarnsOfALimitThatWasSetBelowTheBound) {
  HttpOptions http;
  http.limits.body_bytes = 16 * kMiB;
  MemoryTerms terms{.resident = 40 * kMiB,
                    .requests = 128,
                    .max_total_tokens = 4096,
                    .text_threads = 2,
                    .cache_blocks = 2048,
                    .limit = {300 * kMiB, "/sys/fs/cgroup/memory.max", true}};
  FitMemory(http, terms.limit);
  EXPECT_EQ(BoundMemory(http, terms).Warning(),
            "the bound of 4.4 GiB is above the 300.0 MiB that the process may take (limit: "
            "/sys/fs/cgroup/memory.max): lower --payload-limit, which sets 4.0 GiB of it, or raise "
            "the limit");
  EXPECT_THAT(BoundMemory(http, terms).Describe(),
              ::testing::HasSubstr("The process may take 300.0 MiB (limit: /sys/fs/cgroup/"));
  http.limits.body_bytes = kMiB;
  terms.requests = 1000;
  EXPECT_THAT(BoundMemory(http, terms).Warning(),
              ::testing::HasSubstr("lower --max-concurrent-requests, which sets 1.0 GiB"));
  terms.limit.bytes = 16384 * kMiB;
  EXPECT_EQ(BoundMemory(http, terms).Warning(), "");
  // Of a machine without a limit the description alone speaks.
  terms.limit = {300 * kMiB, "the machine's memory", false};
  EXPECT_EQ(BoundMemory(http, terms).Warning(), "");
}

}  // namespace
}  // namespace penstock::router
