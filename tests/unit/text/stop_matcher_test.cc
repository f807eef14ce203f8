#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace penstock::text {
namespace {

using Where = StopMatcher::Where;

std::optional<StopMatch> Feed(StopMatcher& matcher, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) {
    if (auto match = matcher.Push(piece)) return match;
  }
  return std::nullopt;
}

TEST(StopMatcher, FindsAStopStringInsideAPiece) {
  StopMatcher matcher({"END"}, Where::kAnywhere);
  const auto match = Feed(matcher, {"one ", "two END three"});
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 8u);
  EXPECT_EQ(match->end, 11u);
  EXPECT_EQ(match->token_count, 2u);
}

TEST(StopMatcher, FindsAStopStringAcrossPiecesAndHoldsItsBeginning) {
  StopMatcher matcher({"\n\nUser:"}, Where::kAnywhere);
  EXPECT_FALSE(matcher.Push("hi\n"));
  EXPECT_EQ(matcher.held(), 1u);
  EXPECT_FALSE(matcher.Push("\nUs"));
  EXPECT_EQ(matcher.held(), 4u);
  EXPECT_FALSE(matcher.Push(""));
  const auto match = matcher.Push("er: x");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 2u);
  EXPECT_EQ(match->token_count, 4u);
}

TEST(StopMatcher, ReleasesTextThatIsNoStopString) {
  StopMatcher matcher({"aab"}, Where::kAnywhere);
  EXPECT_FALSE(matcher.Push("aa"));
  EXPECT_EQ(matcher.held(), 2u);
  EXPECT_FALSE(matcher.Push("a"));
  EXPECT_EQ(matcher.held(), 2u);
  EXPECT_FALSE(matcher.Push("c"));
  EXPECT_EQ(matcher.held(), 0u);
}

TEST(StopMatcher, TakesTheFirstToEndAndThenTheLongest) {
  StopMatcher first({"xabc", "ab"}, Where::kAnywhere);
  EXPECT_EQ(Feed(first, {"xabc"})->stop, 1u);
  StopMatcher longest({"b", "ab"}, Where::kAnywhere);
  EXPECT_EQ(Feed(longest, {"zab"})->stop, 1u);
}

TEST(StopMatcher, AtPieceEndIgnoresTheMiddleOfAPiece) {
  StopMatcher matcher({"stop"}, Where::kAtPieceEnd);
  EXPECT_FALSE(matcher.Push("stop it"));
  EXPECT_FALSE(matcher.Push(" st"));
  const auto match = matcher.Push("op");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->end, 12u);
  EXPECT_EQ(match->token_count, 3u);
}

TEST(StopMatcher, TheEmptyStringMatchesAfterTheFirstPiece) {
  for (const Where where : {Where::kAnywhere, Where::kAtPieceEnd}) {
    StopMatcher matcher({"", "zz"}, where);
    const auto match = matcher.Push("abc");
    ASSERT_TRUE(match);
    EXPECT_EQ(match->begin, 3u);
    EXPECT_EQ(match->token_count, 1u);
  }
}

TEST(StopMatcher, WithoutStopStringsNoTextWaits) {
  StopMatcher matcher({}, Where::kAnywhere);
  EXPECT_FALSE(matcher.Push("abc"));
  EXPECT_EQ(matcher.held(), 0u);
}

// A naive search that tries every end and every stop string.
struct Naive {
  std::optional<StopMatch> match;
  std::size_t held = 0;
};

Naive Search(const std::string& text, const std::vector<std::string>& stops) {
  Naive naive;
  for (std::size_t end = 1; end <= text.size() && !naive.match; ++end) {
    for (std::size_t i = 0; i < stops.size(); ++i) {
      const std::size_t size = stops[i].size();
      if (!text.substr(0, end).ends_with(stops[i])) continue;
      if (naive.match && naive.match->end - naive.match->begin >= size) continue;
      naive.match = StopMatch{.stop = i, .begin = end - size, .end = end, .token_count = 0};
    }
  }
  for (const std::string& stop : stops) {
    for (std::size_t size = 1; size < stop.size(); ++size) {
      if (text.ends_with(stop.substr(0, size))) naive.held = std::max(naive.held, size);
    }
  }
  return naive;
}

TEST(StopMatcher, AgreesWithANaiveSearchForEveryDivisionOfTheText) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto word = [&](unsigned longest) {
    std::string text;
    for (unsigned i = 0; i < 1 + random() % longest; ++i) text += "abc"[random() % 3];
    return text;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) stops.push_back(word(5));
    StopMatcher matcher(stops, Where::kAnywhere);
    std::string text;
    for (std::uint32_t token = 1; token <= 8; ++token) {
      const std::string piece = random() % 5 == 0 ? "" : word(4);
      text += piece;
      const auto match = matcher.Push(piece);
      const Naive naive = Search(text, stops);
      ASSERT_EQ(match.has_value(), naive.match.has_value()) << text;
      if (match) {
        ASSERT_EQ(match->begin, naive.match->begin) << text;
        ASSERT_EQ(match->end, naive.match->end) << text;
        ASSERT_EQ(stops[match->stop], stops[naive.match->stop]) << text;
        ASSERT_EQ(match->token_count, token);
        break;
      }
      ASSERT_EQ(matcher.held(), naive.held) << text;
    }
  }
}

}  // namespace
}  // namespace penstock::text
