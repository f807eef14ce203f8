#include "router/json/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "router/json/unicode.h"

namespace penstock::router::json {
namespace {

std::string Float(float value) {
  std::string out;
  AppendFloat(out, value);
  return out;
}
std::string Double(double value) {
  std::string out;
  AppendDouble(out, value);
  return out;
}
std::string String(std::string_view text) {
  std::string out;
  AppendString(out, text);
  return out;
}

TEST(JsonWriter, NumbersLookAsSerdeWritesThem) {
  EXPECT_EQ(Float(-0.25f), "-0.25");
  EXPECT_EQ(Float(-1.0f), "-1.0");
  EXPECT_EQ(Float(0.0f), "0.0");
  EXPECT_EQ(Float(-0.0f), "-0.0");
  EXPECT_EQ(Float(0.1f), "0.1");
  EXPECT_EQ(Float(-2.3841855e-7f), "-2.3841855e-7");
  EXPECT_EQ(Float(1.234e-5f), "0.00001234");
  EXPECT_EQ(Float(1e-7f), "1e-7");
  EXPECT_EQ(Float(1234567.0f), "1234567.0");
  EXPECT_EQ(Float(1e12f), "1e12");
  EXPECT_EQ(Float(1e13f), "1e13");
  EXPECT_EQ(Float(3.4028235e38f), "3.4028235e38");
  EXPECT_EQ(Float(std::numeric_limits<float>::quiet_NaN()), "null");
  EXPECT_EQ(Float(-std::numeric_limits<float>::infinity()), "null");
  EXPECT_EQ(Double(1.8446744073709552e19), "1.8446744073709552e19");
  EXPECT_EQ(Double(1e15), "1000000000000000.0");
  EXPECT_EQ(Double(123.456), "123.456");
  EXPECT_EQ(Double(0.00012), "0.00012");
  EXPECT_EQ(Double(0.000012), "0.000012");
  EXPECT_EQ(Double(0.0000012), "1.2e-6");
}

TEST(JsonWriter, EveryFloatReadsBackAsItself) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  for (int round = 0; round < 20'000; ++round) {
    const std::uint32_t bits = random();
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    const double read = boost::json::parse(Float(value)).as_double();
    ASSERT_EQ(static_cast<float>(read), value) << "seed " << seed << " " << Float(value);
  }
}

// The significant digits of a number in any notation.
std::string Digits(std::string text) {
  text.resize(std::min(text.find('e'), text.size()));
  std::erase_if(text, [](char c) { return c == '.' || c == '-'; });
  text.erase(0, text.find_first_not_of('0'));
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

TEST(JsonWriter, EveryFloatHasTheFewestDigits) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::uniform_real_distribution<float> exponent(-9, 7);
  for (int round = 0; round < 20'000; ++round) {
    float value = -std::pow(10.0f, exponent(random));
    if (round % 3 == 0) value = std::round(value);
    if (value == 0) continue;
    std::array<char, 32> text;
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific)
            .ptr;
    ASSERT_EQ(Digits(Float(value)), Digits({text.data(), end})) << "seed " << seed;
  }
}

TEST(JsonWriter, StringsEscapeOnlyWhatTheyMust) {
  EXPECT_EQ(String("a\"b\\c/\n\r\t\b\f\x01\x1f\x7f"),
            "\"a\\\"b\\\\c/\\n\\r\\t\\b\\f\\u0001\\u001f\x7f\"");
  EXPECT_EQ(String("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\"");
  EXPECT_EQ(String(std::string_view("\0", 1)), "\"\\u0000\"");
  EXPECT_EQ(String("a\xff\xc3"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");  // never malformed on the wire
}

TEST(Unicode, OnlyWellFormedTextIsUtf8) {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "a\xffz"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
  EXPECT_EQ(CutUtf8("a\xc3\xa4", 2), "a");
  EXPECT_EQ(CountCharacters("a\xc3\xa4\xf0\x9f\x98\x80"), 3U);
}

TEST(JsonWriter, ObjectsAndArraysHaveTheirCommas) {
  const std::vector<int> numbers = {1, 2};
  const std::optional<float> absent;
  std::string out = "{";
  AppendMembers(out, "a", 1, "b", absent);
  AppendMembers(out, "c", Array(numbers, Append<int>), "d", Object("e", "x", "f", nullptr));
  EXPECT_EQ(out + "}", R"({"a":1,"b":null,"c":[1,2],"d":{"e":"x","f":null}})");
  EXPECT_EQ(ObjectText("g", Raw{"[ ]"}, "h", true, "i", 0.5), R"({"g":[ ],"h":true,"i":0.5})");
  std::string list;
  AppendObject(list);
  AppendObject(list, "j", std::string("{"));
  EXPECT_EQ(list, R"({},{"j":"{"})");
}

// A value may outlive the temporaries that it was made of.
TEST(JsonWriter, ValuesKeepTheirTemporaries) {
  const auto value = Object("a", std::string(100, 'x'));
  EXPECT_EQ(ObjectText("b", value), R"({"b":{"a":")" + std::string(100, 'x') + "\"}}");
}

}  // namespace
}  // namespace penstock::router::json
