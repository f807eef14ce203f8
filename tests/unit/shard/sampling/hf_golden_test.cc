// Compares processors and filters with HF transformers (tests/data/goldens/sampling.json).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "shard/sampling/filters.h"
#include "shard/sampling/processors.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

boost::json::array GoldenCases() {
  std::ifstream file(testing_support::SourcePath("tests/data/goldens/sampling.json"));
  std::ostringstream text;
  text << file.rdbuf();
  return boost::json::parse(text.str()).at("cases").as_array();
}

SamplingParams ParamsOf(const boost::json::value& parameters) {
  const auto number = [&](const char* key) { return parameters.at(key).to_number<float>(); };
  SamplingParams params;
  params.do_sample = true;
  params.repetition_penalty = number("repetition_penalty");
  params.temperature = number("temperature");
  params.top_k = parameters.at("top_k").to_number<std::uint32_t>();
  params.top_p = number("top_p");
  params.min_p = number("min_p");
  params.typical_p = number("typical_p");
  return params;
}

std::vector<double> Softmax(const std::vector<Candidate>& candidates) {
  double best = candidates.front().logit;
  for (const Candidate& candidate : candidates) best = std::max<double>(best, candidate.logit);
  std::vector<double> weights;
  double sum = 0;
  for (const Candidate& candidate : candidates) {
    sum += weights.emplace_back(std::exp(candidate.logit - best));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

TEST(HfGolden, ProcessorsAndFiltersLeaveTheSameTokens) {
  const boost::json::array cases = GoldenCases();
  ASSERT_GE(cases.size(), 40u);
  for (const boost::json::value& golden : cases) {
    SCOPED_TRACE(boost::json::serialize(golden.at("name")) + " " +
                 boost::json::serialize(golden.at("parameters")));
    const SamplingParams params = ParamsOf(golden.at("parameters"));
    auto logits = boost::json::value_to<std::vector<float>>(golden.at("logits"));
    const auto processed = boost::json::value_to<std::vector<float>>(golden.at("processed"));
    const auto kept = boost::json::value_to<std::vector<std::uint32_t>>(golden.at("kept"));
    const auto expected = boost::json::value_to<std::vector<double>>(golden.at("probabilities"));

    TokenHistory history;
    history.AddPrompt(boost::json::value_to<std::vector<TokenId>>(golden.at("history")));
    ProcessLogits(params, &history, {}, logits);
    ASSERT_EQ(logits.size(), processed.size());
    for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], processed[i], 1e-5);

    std::vector<Candidate> candidates;
    FilterCandidates(params, logits, candidates);
    std::vector<std::uint32_t> ids;
    for (const Candidate& candidate : candidates) ids.push_back(candidate.token);
    ASSERT_EQ(ids, kept);
    EXPECT_THAT(Softmax(candidates), testing::Pointwise(testing::DoubleNear(1e-5), expected));
  }
}

// The numbers of tests/oracle/sampling_rows.py, from which both sides make rows and parameters.
class Numbers {
 public:
  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  template <class T>
  T Pick(std::initializer_list<T> values) {
    return values.begin()[Next() % values.size()];
  }

 private:
  std::uint64_t state_ = 2411;
};

std::vector<float> DrawRow(Numbers& numbers) {
  const auto scale = numbers.Pick({0.0f, 0.125f, 1.0f, 8.0f, 1e4f, 1e30f});
  const auto span = numbers.Pick<std::uint64_t>({3, 9, 65});
  const auto masked = numbers.Pick<std::uint64_t>({0, 0, 4, 2});
  std::vector<float> row;
  for (int i = 0; i < 32; ++i) {
    const auto value = static_cast<float>(numbers.Next() % span) - static_cast<float>(span / 2);
    const bool hidden = masked > 0 && numbers.Next() % masked == 0 && i > 0;
    row.push_back(hidden ? -std::numeric_limits<float>::infinity() : value * scale);
  }
  return row;
}

SamplingParams DrawParameters(Numbers& numbers) {
  SamplingParams params;
  params.do_sample = true;
  params.temperature = numbers.Pick({1.0f, 1.0f, 0.25f, 0.5f, 2.0f, 8.0f});
  params.top_k = numbers.Pick<std::uint32_t>({0, 0, 1, 2, 5, 31, 32, 100});
  params.top_p = numbers.Pick({1.0f, 1.0f, 0.125f, 0.5f, 0.875f, 0.984375f});
  params.min_p = numbers.Pick({0.0f, 0.0f, 0.03125f, 0.25f, 0.875f});
  params.typical_p = numbers.Pick({1.0f, 1.0f, 0.25f, 0.875f, 0.984375f});
  params.top_n_sigma = numbers.Pick({0.0f, 0.0f, 0.5f, 1.0f, 2.5f});
  return params;
}

// Equal up to equal scores.
TEST(HfGolden, FiltersKeepTheSameOfManyRowsWithTiesAndExtremes) {
  std::ifstream golden(testing_support::SourcePath("tests/data/goldens/sampling_rows.txt"));
  Numbers numbers;
  std::string line;
  int decided = 0;
  for (int number = 1; std::getline(golden, line); ++number) {
    const std::vector<float> row = DrawRow(numbers);
    const SamplingParams params = DrawParameters(numbers);
    if (line == "-") continue;
    ++decided;
    std::vector<float> expected, kept;
    const unsigned long ids = std::stoul(line, nullptr, 16);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (((ids >> i) & 1) != 0) expected.push_back(row[i]);
    }
    std::vector<Candidate> candidates;
    FilterCandidates(params, row, candidates);
    for (const Candidate& candidate : candidates) kept.push_back(row[candidate.token]);
    EXPECT_THAT(kept, testing::UnorderedElementsAreArray(expected)) << "line " << number;
  }
  EXPECT_GE(decided, 10'000);
}

}  // namespace
}  // namespace penstock::shard
