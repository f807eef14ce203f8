#include "router/api/request_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::router {
namespace {

using ::testing::HasSubstr;

ModelFacts Facts() {
  ModelFacts facts;
  facts.max_input_tokens = 1000;
  facts.max_total_tokens = 2000;
  return facts;
}

GenerationRequest Request(std::uint32_t tokens) {
  GenerationRequest request;
  request.max_new_tokens = tokens;
  return request;
}

TEST(RequestCost, CountsTheTokensOfAllAnswers) {
  EXPECT_EQ(CostOf({Request(100), Request(50)}, Facts()).total(), 150u);
  EXPECT_EQ(CostOf({GenerationRequest{}}, Facts()).tokens, 2000u) << "all that fits";
  EXPECT_EQ(CostOf({Request(4'000'000'000)}, Facts()).tokens, 2000u);
}

TEST(RequestCost, CountsABeamSearchOnce) {
  GenerationRequest search = Request(10);
  search.beams = BeamParams{.width = 8, .results = 2};
  EXPECT_EQ(CostOf({search, search}, Facts()).tokens, 80u);
}

TEST(RequestCost, MultipliesAlternativesTokensAndAnswers) {
  GenerationRequest request = Request(100);
  request.logprobs.top_n = 20;
  EXPECT_EQ(CostOf({request, request}, Facts()).alternatives, 1000u);
  request.logprobs.prompt_top_n = 20;
  EXPECT_EQ(CostOf({request}, Facts()).alternatives, 5500u);
}

TEST(RequestCost, CountsStringsForEachToken) {
  GenerationRequest request = Request(64);
  request.stop = {std::string(100, 'x'), std::string(50, 'y')};
  request.bad_words = {std::string(30, 'z')};
  request.sampling.logit_bias.resize(20);
  EXPECT_EQ(CostOf({request}, Facts()).strings, 200u);
}

TEST(RequestCost, CountsBytesOfGrammars) {
  GenerationRequest request = Request(1);
  request.grammar.source = std::string(1000, ' ');
  EXPECT_EQ(CostOf({request}, Facts()).grammar, 16'000u);
}

TEST(RequestCost, ARefusalNamesCostLimitAndParts) {
  GenerationRequest request = Request(1000);
  request.logprobs.top_n = 20;
  EXPECT_FALSE(CheckCost({request}, Facts(), 6000));
  EXPECT_FALSE(CheckCost({request}, Facts(), 0)) << "no limit";
  const auto error = CheckCost({request}, Facts(), 5999);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ApiErrorKind::kValidation);
  EXPECT_THAT(error->message,
              HasSubstr("may cost at most 5999 (--max-request-cost). Given: 6000, 1000 for the "
                        "tokens of all answers, 5000 for alternatives of tokens"));
}

}  // namespace
}  // namespace penstock::router
