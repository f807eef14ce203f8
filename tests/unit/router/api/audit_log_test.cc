#include "router/api/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/support/temp_folder.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<boost::json::object> LinesOf(const std::string& path) {
  std::vector<boost::json::object> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(boost::json::parse(line).as_object());
  }
  return lines;
}

class AuditLogTest : public ::testing::Test {
 protected:
  void Write(RequestEnd end, int status = 200) {
    log_.Write({.head = head_,
                .peer = "1.2.3.4",
                .route = "/generate",
                .status = status,
                .sent = 10,
                .end = end});
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "audit";
  AuditLog log_;
  RequestHead head_{.method = "POST",
                    .path = "/generate?\"\n",
                    .request_id = "r-1",
                    .tenant = "alice",
                    .arrived = SteadyNow()};
};

TEST_F(AuditLogTest, WritesALineForEachAnswer) {
  ASSERT_TRUE(log_.Open(path_).ok());
  Write({.finish_reason = "length", .tokens = TokenCounts{7, 3, Duration(1)}});
  Write({.failure = RequestFailure{"overloaded", "too many"}}, 429);
  const auto lines = LinesOf(path_);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].at("tenant").as_string(), "alice");
  EXPECT_EQ(lines[0].at("request_id").as_string(), "r-1");
  EXPECT_EQ(lines[0].at("prompt_tokens").as_int64(), 7);
  EXPECT_EQ(lines[0].at("generated_tokens").as_int64(), 3);
  EXPECT_EQ(lines[0].at("finish_reason").as_string(), "length");
  EXPECT_FALSE(lines[0].contains("error_kind"));
  EXPECT_EQ(lines[1].at("status").as_int64(), 429);
  EXPECT_EQ(lines[1].at("error_kind").as_string(), "overloaded");
}

TEST_F(AuditLogTest, AppendsAndIsOpenedAgainAfterAMove) {
  ASSERT_TRUE(log_.Open(path_).ok());
  Write({});
  std::filesystem::rename(path_, path_ + ".1");
  Write({});
  ASSERT_TRUE(log_.OpenAgain().ok());
  Write({});
  EXPECT_THAT(LinesOf(path_ + ".1"), SizeIs(2));
  EXPECT_THAT(LinesOf(path_), SizeIs(1));
  AuditLog second;
  ASSERT_TRUE(second.Open(path_).ok());
  Write({});
  EXPECT_THAT(LinesOf(path_), SizeIs(2));
}

TEST_F(AuditLogTest, AFileThatCannotBeWrittenIsNamed) {
  const absl::Status opened = log_.Open(folder_ / "no/such/folder");
  EXPECT_THAT(std::string(opened.message()), HasSubstr("audit-log"));
  EXPECT_THAT(std::string(opened.message()), HasSubstr("no/such/folder"));
}

}  // namespace
}  // namespace penstock::router
