#include "router/api/tenant_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFile[] = R"(# comment
tenants:
  research:
    key: sk-1
    weight: 2
    max_requests: 32
    tokens_per_minute: 60000
    queue_share: 0.25
    max_priority: -5
  batch:
    keys: [sk-2, sk-3]
prefix_cache: shared
)";

std::string WhyNot(const std::string& text) {
  return std::string(ParseTenants("", text, "file").status().message());
}

std::string WhyNotLimit(const std::string& line) {
  return WhyNot("tenants:\n  a:\n    key: sk-secret\n    " + line + "\n");
}

TEST(TenantFile, GivesKeysWeightsAndLimits) {
  ASSERT_TRUE(IsTenantFile(kFile));
  const auto keys = ParseTenants("plain", kFile, "file");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->NameOf("sk-1"), "research");
  EXPECT_EQ(keys->NameOf("sk-2"), "batch");
  EXPECT_EQ(keys->NameOf("sk-3"), "batch");
  EXPECT_EQ(keys->NameOf("plain"), "default");
  const TenantLimits expected{.weight = 2,
                              .max_requests = 32,
                              .tokens_per_minute = 60000,
                              .queue_share = 0.25,
                              .max_priority = -5};
  EXPECT_EQ(*keys->LimitsOf("research"), expected);
  EXPECT_EQ(*keys->LimitsOf("batch"), TenantLimits{.queue_share = 0.5}) << "one of several";
  EXPECT_EQ(keys->LimitsOf("default"), nullptr);
  EXPECT_TRUE(keys->shares_prefixes());
}

TEST(TenantFile, ASingleTenantHasTheWholeQueueAndPrefixesAreApart) {
  const auto keys = ParseTenants("", "tenants:\n  a:\n    key: b\n", "file");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->LimitsOf("a")->queue_share, 1);
  EXPECT_FALSE(keys->shares_prefixes());
}

TEST(TenantFile, LinesOfNamesAndKeysAreTheOtherForm) {
  EXPECT_FALSE(IsTenantFile("alice:first\ntenants:secret\n"));
  EXPECT_FALSE(IsTenantFile("# tenants:\n"));
  EXPECT_TRUE(IsTenantFile("prefix_cache: tenant\ntenants:   # all of them\r\n"));
}

TEST(TenantFile, ErrorsNameLineFieldValueAndLimits) {
  EXPECT_EQ(WhyNotLimit("weight: 0"),
            "file:4: a.weight must be a whole number from 1 to 1000. Given: 0");
  EXPECT_EQ(WhyNotLimit("weight: 1.5"),
            "file:4: a.weight must be a whole number from 1 to 1000. Given: 1.5");
  EXPECT_THAT(WhyNotLimit("max_requests: -1"), HasSubstr("from 1 to 65536. Given: -1"));
  EXPECT_THAT(WhyNotLimit("tokens_per_minute: many"), HasSubstr("Given: many"));
  EXPECT_THAT(WhyNotLimit("queue_share: 1.1"), HasSubstr("a number from 0.001 to 1. Given: 1.1"));
  EXPECT_THAT(WhyNotLimit("queue_share: nan"), HasSubstr("Given: nan"));
  EXPECT_THAT(WhyNotLimit("max_priority: 4294967296"), HasSubstr("Given: 4294967296"));
  EXPECT_THAT(WhyNotLimit("wieght: 2"), HasSubstr("a.wieght is unknown; a tenant has key, keys"));
  EXPECT_THAT(WhyNotLimit("weight: [1]"), HasSubstr("Given: no plain value"));
  EXPECT_EQ(WhyNotLimit("key: other"), "file:4: a.key is given twice");
  EXPECT_EQ(WhyNot("tenants:\n  a:\n    weight: 2\n"), "file:3: a must have `key` or `keys`");
  EXPECT_THAT(WhyNot("tenants:\n  a b:\n    key: c\n"), HasSubstr("1 to 64 characters"));
  EXPECT_THAT(WhyNot("tenants: {a: {key: b}, c: {key: b}}"),
              HasSubstr("a and c have the same key"));
  EXPECT_THAT(WhyNot("tenants: {a: {key: b}, a: {key: c}}"), HasSubstr("the name a is taken"));
  EXPECT_THAT(WhyNot("tenants: {default: {key: b}}"), HasSubstr("the name default is taken"));
  EXPECT_THAT(WhyNot("tenants: []"), HasSubstr("at least one"));
  EXPECT_THAT(WhyNot("tenants: {a: {key: b}}\nprefix_cache: all\n"),
              HasSubstr("file:2: prefix_cache must be tenant or shared. Given: all"));
  EXPECT_THAT(WhyNot("tenants: {a: {key: b}}\nother: 1\n"), HasSubstr("`other` is unknown"));
  EXPECT_THAT(WhyNot("tenants: {a: {key: b}"), HasSubstr("not YAML"));
}

TEST(TenantFile, ErrorsDoNotHoldKeys) {
  for (const char* line : {"weight: 0", "wieght: 2", "key: other", "keys: sk-other"}) {
    EXPECT_THAT(WhyNotLimit(line), Not(HasSubstr("sk-"))) << line;
  }
}

}  // namespace
}  // namespace penstock::router
