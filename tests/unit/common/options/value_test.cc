#include "common/options/value.h"

#include <gtest/gtest.h>

namespace penstock::options {
namespace {

OptionSpec SpecOf(Type type) { return {"x", type, "", ""}; }

std::int64_t Bytes(std::string_view text) {
  absl::StatusOr<Parsed> parsed = ParseValue(SpecOf(Type::kBytes), text);
  return parsed.ok() ? std::get<std::int64_t>(*parsed) : -1;
}

TEST(ParseValueTest, BytesTakeUnits) {
  EXPECT_EQ(Bytes("0"), 0);
  EXPECT_EQ(Bytes("2000000"), 2000000);
  EXPECT_EQ(Bytes("64KiB"), 65536);
  EXPECT_EQ(Bytes("16MiB"), 16777216);
  EXPECT_EQ(Bytes("8G"), 8589934592);
  EXPECT_EQ(Bytes("1.5GiB"), 1610612736);
  EXPECT_EQ(Bytes("2MB"), 2000000);
  EXPECT_EQ(Bytes("12B"), 12);
}

TEST(ParseValueTest, BytesRefuseOtherTexts) {
  for (const char* text : {"", "MiB", "-1", "0.5", "1e30", "1 MiB x", "nan", "inf", "0x10"}) {
    EXPECT_EQ(Bytes(text), -1) << text;
  }
}

MemoryAmount Memory(std::string_view text) {
  absl::StatusOr<Parsed> parsed = ParseValue(SpecOf(Type::kMemory), text);
  return parsed.ok() ? std::get<MemoryAmount>(*parsed) : MemoryAmount{-1, -1};
}

TEST(ParseValueTest, MemoryIsBytesOrShare) {
  EXPECT_EQ(Memory("1GiB").bytes, 1 << 30);
  EXPECT_EQ(Memory("1GiB").share, 0);
  EXPECT_DOUBLE_EQ(Memory("0.5").share, 0.5);
  EXPECT_DOUBLE_EQ(Memory("50%").share, 0.5);
  EXPECT_DOUBLE_EQ(Memory("1.0").share, 1.0);
  EXPECT_EQ(Memory("50%").bytes, 0);
  for (const char* text : {"0.0", "1.5", "101%", "-5%", "%", "0%"}) {
    EXPECT_EQ(Memory(text).bytes, -1) << text;
  }
}

std::int64_t Nanoseconds(std::string_view text) {
  absl::StatusOr<Parsed> parsed = ParseValue(SpecOf(Type::kDuration), text);
  return parsed.ok() ? std::get<std::chrono::nanoseconds>(*parsed).count() : -1;
}

TEST(ParseValueTest, DurationsWithoutAUnitAreSeconds) {
  EXPECT_EQ(Nanoseconds("90"), 90'000'000'000);
  EXPECT_EQ(Nanoseconds("0"), 0);
  EXPECT_EQ(Nanoseconds("1.5s"), 1'500'000'000);
  EXPECT_EQ(Nanoseconds("100ms"), 100'000'000);
  EXPECT_EQ(Nanoseconds("50us"), 50'000);
  EXPECT_EQ(Nanoseconds("5m"), 300'000'000'000);
  EXPECT_EQ(Nanoseconds("1h"), 3'600'000'000'000);
  for (const char* text : {"s", "-1s", "5 parsecs", "1e12"})
    EXPECT_EQ(Nanoseconds(text), -1) << text;
}

TEST(ParseValueTest, ErrorsNameTheLimit) {
  OptionSpec port = SpecOf(Type::kInt);
  port.min = 0;
  port.max = 65535;
  for (const char* text : {"70000", "-1", "80x", "1.0", "99999999999999999999", "auto"}) {
    absl::StatusOr<Parsed> parsed = ParseValue(port, text);
    EXPECT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().message(), "must be an integer from 0 to 65535");
  }
}

TEST(ParseValueTest, AutoNeedsARowThatAllowsIt) {
  OptionSpec spec = SpecOf(Type::kInt);
  spec.allow_auto = true;
  absl::StatusOr<Parsed> parsed = ParseValue(spec, "auto");
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(std::holds_alternative<Auto>(*parsed));
}

TEST(ParseValueTest, ListsDropEmptyPieces) {
  absl::StatusOr<Parsed> parsed = ParseValue(SpecOf(Type::kList), "a,,b,");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(std::get<std::vector<std::string>>(*parsed), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(ParseValue(SpecOf(Type::kList), ",").ok());
}

TEST(FormatTest, ChoosesTheLargestExactUnit) {
  EXPECT_EQ(FormatBytes(8589934592), "8GiB");
  EXPECT_EQ(FormatBytes(1536), "1536");
  EXPECT_EQ(FormatBytes(65536), "64KiB");
}

}  // namespace
}  // namespace penstock::options
