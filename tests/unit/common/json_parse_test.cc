#include "common/json_parse.h"

#include <gtest/gtest.h>

#include <string>

#include "common/short_text.h"
#include "common/status.h"

namespace penstock {
namespace {

std::string Error(const std::string& text) { return Message(ParseJson(text, 4).status()); }

TEST(ParseJson, GivesTheValue) {
  EXPECT_EQ(ParseJson(" {\"a\": [1]} \n", 4)->at("a").at(0).as_int64(), 1);
}

TEST(ParseJson, NamesThePlaceOfAnError) {
  EXPECT_TRUE(
      Error("{\n \"eps\": NaN,\n}").starts_with("is not valid JSON at line 2, column 9 (`NaN,`): "))
      << Error("{\n \"eps\": NaN,\n}");
  EXPECT_TRUE(Error("[1] x").starts_with("is not valid JSON at line 1, column 5 (`x`): "));
  EXPECT_TRUE(Error("{\"a\": 1").starts_with("is not valid JSON at line 1, column 8: "));
  EXPECT_TRUE(Error("").starts_with("is not valid JSON at line 1, column 1: "));
  EXPECT_TRUE(Error("[[[[[1]]]]]").starts_with("is not valid JSON at line 1, column "));
}

TEST(ShortText, IsOneLineOfWholeCharacters) {
  EXPECT_EQ(ShortText("a\nb", 10), "a?b");
  EXPECT_EQ(ShortText("abc", 3), "abc");
  EXPECT_EQ(ShortText("abcd", 3), "abc…");
  EXPECT_EQ(ShortText("aéb", 2), "a…");  // é has two bytes
  EXPECT_TRUE(HasControlCharacter("a\x01"));
  EXPECT_FALSE(HasControlCharacter("é b"));
}

}  // namespace
}  // namespace penstock
