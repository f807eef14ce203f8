#include "router/dispatch/after_reasoning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const GrammarSpec kGrammar{GrammarSpec::Kind::kRegex, "\"a\""};

ReasoningRule Rule(bool may_open, std::optional<std::uint32_t> budget = std::nullopt) {
  return {.markers = {{"<a>", "</a>", "</a>"}, {"<think>", "</think>", "</think>"}},
          .may_open = may_open,
          .budget = budget};
}

TEST(AfterReasoning, WhatThePromptHasOpenedComesBeforeTheGrammar) {
  const GrammarSpec spec = AfterReasoning(kGrammar, Rule(false), "<|assistant|><think>\n");
  EXPECT_EQ(spec.kind, GrammarSpec::Kind::kLark);
  EXPECT_THAT(spec.source, HasSubstr(R"(%reasoning {"markers":[{"open":"<a>")"));
  EXPECT_THAT(spec.source, HasSubstr(R"("opened":1,"kind":2,"source":"\"a\"")"));
}

TEST(AfterReasoning, ClosedReasoningDoesNotBeginAgain) {
  EXPECT_EQ(AfterReasoning(kGrammar, Rule(true), "<think>\n\n</think>\n\n"), kGrammar);
}

TEST(AfterReasoning, AModelThatDoesNotReasonBeginsWithTheGrammar) {
  EXPECT_EQ(AfterReasoning(kGrammar, Rule(false), "<|assistant|>"), kGrammar);
  EXPECT_EQ(AfterReasoning(kGrammar, {}, "<think>"), kGrammar);
  const GrammarSpec spec = AfterReasoning(kGrammar, Rule(true), "<|assistant|>");
  EXPECT_THAT(spec.source, HasSubstr("%reasoning"));
  EXPECT_THAT(spec.source, Not(HasSubstr("opened")));
}

TEST(AfterReasoning, ABudgetNeedsNoGrammar) {
  EXPECT_TRUE(AfterReasoning({}, Rule(true), "<think>").empty());
  const GrammarSpec spec = AfterReasoning({}, Rule(true, 9), "<think>");
  EXPECT_THAT(spec.source, HasSubstr(R"("opened":1,"budget":9})"));
}

}  // namespace
}  // namespace penstock::router
