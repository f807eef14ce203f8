// Fair shares between tenants, through the whole scheduler (G11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

struct Served {
  std::map<std::string, std::uint64_t> work;
  std::map<std::string, std::uint64_t> requests;
};

// Both tenants have requests waiting all the time; the first one has ten times as many.
Served Serve(std::uint32_t weight_of_few, std::uint32_t prompt_of_many, int results) {
  Config config;
  config.max_waiting_requests = 4000;
  config.max_batch_size = 2;
  Harness harness(config);
  harness.Up();
  std::map<RequestId, std::string> account_of;
  Served served;
  const auto take = [&](const Outputs& out) {
    for (const Event& event : out.events) {
      const std::string& account = account_of.at(event.request);
      if (const auto* started = std::get_if<Started>(&event.what)) {
        served.work[account] += started->prompt_tokens - started->cached_tokens;
        ++served.requests[account];
      } else if (const auto* tokens = std::get_if<Tokens>(&event.what)) {
        served.work[account] += 2 * tokens->tokens.size();
      }
    }
  };
  for (std::uint64_t id = 1; id <= 2200; ++id) {
    const bool many = id % 11 != 0;
    Arrival arrival = Harness::Request(id, many ? prompt_of_many : 8, 6);
    arrival.prompt.front() = static_cast<TokenId>(10'000 + id);
    arrival.account = many ? "many" : "few";
    arrival.weight = many ? 1 : weight_of_few;
    account_of[arrival.request] = arrival.account;
    take(harness.Apply(arrival));
  }
  for (int i = 0; i < results; ++i) take(harness.Result());
  return served;
}

TEST(Shares, TwoTenantsThatWaitGetTheSameWork) {
  Served served = Serve(1, 8, 600);
  EXPECT_NEAR(static_cast<double>(served.work["few"]) / static_cast<double>(served.work["many"]),
              1.0, 0.05);
}

TEST(Shares, WorkAndNotRequestsIsDivided) {
  Served served = Serve(1, 48, 600);
  EXPECT_NEAR(static_cast<double>(served.work["few"]) / static_cast<double>(served.work["many"]),
              1.0, 0.05);
  EXPECT_GT(served.requests["few"], 2 * served.requests["many"]);
}

TEST(Shares, WorkIsInProportionToTheWeights) {
  Served served = Serve(3, 8, 600);
  EXPECT_NEAR(static_cast<double>(served.work["few"]) / static_cast<double>(served.work["many"]),
              3.0, 0.15);
}

TEST(Shares, WhatThePrefixCacheHasIsNotCharged) {
  Config config;
  config.max_batch_size = 1;
  Harness one(config);
  one.Up();
  std::vector<std::uint64_t> order;
  const auto take = [&order](const Outputs& out) {
    for (const Event& event : out.events) {
      if (std::holds_alternative<Started>(event.what)) order.push_back(event.request.value());
    }
  };
  const auto arrive = [&](std::uint64_t id, const std::string& account, TokenId token,
                          std::uint32_t length) {
    Arrival arrival = Harness::Request(id, length, 1);
    arrival.prompt.assign(length, token);
    arrival.account = account;
    take(one.Apply(arrival));
  };
  arrive(1, "a", 7, 41);  // charged 41 + 2
  while (one.in_flight() > 0) take(one.Result());
  arrive(2, "a", 7, 41);  // runs at once: 40 tokens are in the cache, charged 1 + 2
  arrive(3, "b", 8, 8);   // begins where "a" is, and is charged 8 + 2
  arrive(4, "b", 9, 8);
  for (std::uint64_t id = 5; id <= 8; ++id) arrive(id, "a", 7, 41);
  while (one.in_flight() > 0) take(one.Result());
  EXPECT_EQ(std::ranges::find(order, 4) - order.begin(), 6)
      << "a served 1, 2 and then three cached prompts before the second of b";
}

}  // namespace
}  // namespace penstock::scheduler
