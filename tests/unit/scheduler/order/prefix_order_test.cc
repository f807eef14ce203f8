#include "scheduler/order/prefix_order.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

// Prompts are paths through a random tree of blocks. Prompts with a common path share its blocks.
std::vector<TokenId> Walk(std::mt19937_64& random, std::uint32_t block_size) {
  std::vector<TokenId> prompt;
  const std::uint64_t depth = 1 + random() % 12;
  for (std::uint64_t i = 0; i < depth; ++i) {
    prompt.insert(prompt.end(), block_size, static_cast<TokenId>(10 + random() % 3));
  }
  prompt.push_back(9);  // so that the last block can be found, too
  return prompt;
}

// Cached tokens of a batch known in advance, with a cache for little more than one request.
std::uint64_t FoundTokens(Order order, std::uint64_t seed, std::uint64_t& repeated) {
  Config config;
  config.order = order;
  config.max_batch_size = 1;
  config.max_waiting_requests = 1000;
  GroupCapacity capacity = Harness::Capacity();
  capacity.blocks = 13;
  Harness harness(config, capacity);
  std::mt19937_64 random(seed);
  std::set<std::vector<TokenId>> blocks;
  repeated = 0;
  for (std::uint64_t id = 1; id <= 300; ++id) {
    Arrival arrival;
    arrival.request = RequestId(id);
    arrival.prompt = Walk(random, capacity.block_size);
    arrival.max_new_tokens = 1;
    for (auto end = arrival.prompt.begin() + 4; end < arrival.prompt.end(); end += 4) {
      repeated += blocks.emplace(arrival.prompt.begin(), end).second ? 0 : 4;
    }
    harness.Apply(arrival);
  }
  std::uint64_t found = 0;
  Outputs out = harness.Up();
  for (;;) {
    for (const Started& started : All<Started>(out)) found += started.cached_tokens;
    if (harness.in_flight() == 0) break;
    out = harness.Result();
  }
  EXPECT_EQ(harness.state().waiting, 0u);
  return found;
}

TEST(PrefixOrder, ComputesEveryBlockOfABatchOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t repeated = 0;
    EXPECT_EQ(FoundTokens(Order::kLongestPrefix, seed, repeated), repeated) << "seed " << seed;
    EXPECT_LT(FoundTokens(Order::kFcfs, seed, repeated), repeated / 2) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::scheduler
