#include "common/json_text.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

namespace json = boost::json;

TEST(NumberTextTest, HasNoExponent) {
  EXPECT_EQ(NumberText(1.945564), "1.945564");
  EXPECT_EQ(NumberText(350.28), "350.28");
  EXPECT_EQ(NumberText(1e6), "1000000");
  EXPECT_EQ(NumberText(1e-5), "0.00001");
  EXPECT_EQ(NumberText(-0.5), "-0.5");
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(1e300), "1e+300");
}

TEST(NumberTextTest, RoundsToSignificantDigits) {
  EXPECT_EQ(NumberText(1234567.8, 6), "1234570");
  EXPECT_EQ(NumberText(0.123456789, 6), "0.123457");
}

TEST(JsonTextTest, IsCompactAndReadsBackTheSame) {
  const json::value value = {{"a", 350.28},       {"b", 3.0},  {"c", {1, 0.1, "x\"y"}},
                             {"d", nullptr},      {"e", true}, {"f", json::object()},
                             {"g", json::array()}};
  const std::string text = JsonText(value);
  EXPECT_EQ(text, R"({"a":350.28,"b":3.0,"c":[1,0.1,"x\"y"],"d":null,"e":true,"f":{},"g":[]})");
  EXPECT_EQ(json::parse(text), value);
  EXPECT_EQ(JsonText(std::numeric_limits<double>::quiet_NaN()), "null");
}

}  // namespace
}  // namespace penstock
