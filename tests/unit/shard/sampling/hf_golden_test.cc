// Compares processors and filters with HF transformers (tests/data/goldens/sampling.json).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
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

}  // namespace
}  // namespace penstock::shard
