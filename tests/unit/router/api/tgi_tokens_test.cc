#include "router/api/tgi/generate/tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <string>

namespace penstock::router::tgi {
namespace {

// Empty: the short way does not take the token.
std::string ShortWay(const TokenInfo& token) {
  json::FixedText<kUsualTokenBytes> out;
  return AddUsualToken(out, token) ? std::string(out.view()) : "";
}

std::string LongWay(const TokenInfo& token) {
  std::string out;
  AppendToken(out, token);
  return out;
}

TEST(TgiTokensTest, TheShortWayWritesWhatTheLongOneDoes) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::size_t taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    TokenInfo token;
    token.id = static_cast<TokenId>(random() >> (random() % 32));
    token.text.resize(random() % 70);
    for (char& c : token.text)
      c = static_cast<char>(' ' + random() % (random() % 64 == 0 ? 97 : 90));
    token.logprob = -std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 16) - 40);
    token.special = random() % 2 == 0;
    const std::string written = ShortWay(token);
    if (written.empty()) continue;
    ++taken;
    ASSERT_EQ(written, LongWay(token));
  }
  EXPECT_GT(taken, 2'000u);
}

TEST(TgiTokensTest, TheShortWayHasRoomForTheLongestToken) {
  TokenInfo token{.id = -2147483647 - 1,
                  .text = std::string(kUsualTextBytes, 'x'),
                  .logprob = -262143.97f,
                  .special = true};
  EXPECT_EQ(ShortWay(token), LongWay(token));
  token.logprob = -0.00012345678f;
  EXPECT_EQ(ShortWay(token), LongWay(token));
}

TEST(TgiTokensTest, TheShortWayLeavesWhatIsRare) {
  const TokenInfo usual{.id = 7, .text = "a", .logprob = -0.5f, .special = false};
  EXPECT_NE(ShortWay(usual), "");
  for (const char* text : {"\"", "\\", "\n", "\x1f", "é", "\xff"}) {
    TokenInfo token = usual;
    token.text = text;
    EXPECT_EQ(ShortWay(token), "") << text;
  }
  TokenInfo token = usual;
  token.text.assign(kUsualTextBytes + 1, 'x');
  EXPECT_EQ(ShortWay(token), "");
  token = usual;
  token.logprob.reset();
  EXPECT_EQ(ShortWay(token), "");
  token.logprob = 0.0f;
  EXPECT_EQ(ShortWay(token), "");
}

}  // namespace
}  // namespace penstock::router::tgi
