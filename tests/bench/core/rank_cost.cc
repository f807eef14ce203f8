#include "tests/bench/core/rank_cost.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "router/rank/rank_model.h"
#include "sim/random.h"

namespace penstock::bench {
namespace {

constexpr std::uint32_t kTrees = 200;
constexpr std::uint32_t kNodes = 30;
constexpr std::uint32_t kWords = 512;
constexpr std::uint32_t kVocabulary = 2000;

std::string Joined(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) {
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  }
  return text + "]";
}

// Each node has two nodes or leaves below it, as in a tree that grew evenly.
std::string Tree(sim::Random& random) {
  std::vector<std::int64_t> feature, threshold, left, right, leaf;
  const auto child = [&](std::uint32_t node) -> std::int64_t {
    if (node < kNodes) return node;
    leaf.push_back(random.Between(0, 2000));
    return -static_cast<std::int64_t>(leaf.size());
  };
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    feature.push_back(random.Below(5 + kWords));
    threshold.push_back(random.Below(3));
    left.push_back(child(2 * node + 1));
    right.push_back(child(2 * node + 2));
  }
  return "{\"feature\":" + Joined(feature) + ",\"threshold\":" + Joined(threshold) +
         ",\"left\":" + Joined(left) + ",\"right\":" + Joined(right) + ",\"leaf\":" + Joined(leaf) +
         "}";
}

router::RankModel Model(sim::Random& random) {
  std::string words, trees;
  for (std::uint32_t word = 0; word < kWords; ++word) {
    const std::vector<std::int64_t> ids(1 + word % 3, word);  // no two are equal
    words += (words.empty() ? "" : ",") + Joined(ids);
  }
  for (std::uint32_t tree = 0; tree < kTrees; ++tree) {
    trees += (trees.empty() ? "" : ",") + Tree(random);
  }
  auto model = router::RankModel::Parse(
      "{\"format\":\"penstock rank model\",\"version\":1,\"base\":0,\"words\":[" + words +
      "],\"trees\":[" + trees + "]}");
  PENSTOCK_CHECK(model.ok(), "the model is written as the router reads it");
  return *std::move(model);
}

}  // namespace

Percentiles MeasureRanks(std::uint32_t tokens) {
  constexpr int kRuns = 2000;
  sim::Random random(1);
  const router::RankModel model = Model(random);
  std::vector<double> microseconds;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<TokenId> prompt(tokens);
    for (TokenId& id : prompt) id = static_cast<TokenId>(random.Below(kVocabulary));
    const auto start = std::chrono::steady_clock::now();
    const std::uint32_t predicted = model.Predict({.prompt = prompt});
    const auto end = std::chrono::steady_clock::now();
    PENSTOCK_CHECK(predicted >= 1, "a prediction is at least one token");
    microseconds.push_back(std::chrono::duration<double, std::micro>(end - start).count());
  }
  return Summarise(std::move(microseconds));
}

}  // namespace penstock::bench
