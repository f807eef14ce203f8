#include "launcher/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace penstock::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

options::Values ValuesFor(const std::string& model) {
  options::Values values(options::ProgramFor(options::kLauncher));
  EXPECT_TRUE(values.Set("model-id", model).ok());
  return values;
}

TEST(ReadyBlockTest, NamesModelAddressAndACurlLine) {
  options::Values values = ValuesFor("models/tiny");
  const std::string block = ReadyBlock(values, "127.0.0.1:3000", std::chrono::milliseconds(1234));
  EXPECT_THAT(block, HasSubstr("is ready after 1.2 s"));
  EXPECT_THAT(block, HasSubstr("model:   models/tiny, 1 shard\n"));
  EXPECT_THAT(block, HasSubstr("address: http://127.0.0.1:3000\n"));
  EXPECT_THAT(block, HasSubstr("  curl http://127.0.0.1:3000/generate -H "));
  ASSERT_TRUE(values.Set("served-model-name", "story").ok());
  ASSERT_TRUE(values.Set("num-shard", "2").ok());
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:3000", {}), HasSubstr("model:   story, 2 shards\n"));
}

TEST(ReadyBlockTest, AUserAtATerminalIsToldOfThePageAndTheChat) {
  options::Values values = ValuesFor("m");
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:3000", {}, "penstock"),
              HasSubstr("  page:    http://127.0.0.1:3000/\n  chat:    penstock chat\n"));
  EXPECT_THAT(ReadyBlock(values, "0.0.0.0:80", {}, "/opt/penstock"),
              HasSubstr("  chat:    /opt/penstock chat --url http://127.0.0.1:80\n"));
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:3000", {}), Not(HasSubstr("chat:")));
  ASSERT_TRUE(values.Set("api-key", "k").ok());
  ASSERT_TRUE(values.Set("tls-cert", "c").ok());
  ASSERT_TRUE(values.Set("console", "false").ok());
  const std::string secured = ReadyBlock(values, "127.0.0.1:80", {}, "penstock");
  EXPECT_THAT(secured, Not(HasSubstr("page:")));
  EXPECT_THAT(secured, HasSubstr("chat:    penstock chat --url https://127.0.0.1:80 --insecure "
                                 "--api-key YOUR_KEY\n"));
  ASSERT_TRUE(values.Set("tls-client-ca", "ca").ok());
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:80", {}, "penstock"), Not(HasSubstr("chat:")));
}

TEST(ReadyBlockTest, TheStandInForTgiHasNoPage) {
  options::Values values = ValuesFor("m");
  ASSERT_TRUE(values.Set("api-profile", "tgi").ok());
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:80", {}, "penstock"), Not(HasSubstr("page:")));
}

TEST(ReadyBlockTest, AWildcardHostBecomesLoopback) {
  const options::Values values = ValuesFor("m");
  EXPECT_THAT(ReadyBlock(values, "0.0.0.0:80", {}), HasSubstr("curl http://127.0.0.1:80/generate"));
  EXPECT_THAT(ReadyBlock(values, "[::]:80", {}), HasSubstr("curl http://[::1]:80/generate"));
}

TEST(ReadyBlockTest, TheCurlLineFitsTheProfile) {
  options::Values values = ValuesFor("m");
  ASSERT_TRUE(values.Set("api-profile", "djl").ok());
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:80", {}),
              HasSubstr("curl http://127.0.0.1:80/invocations -H "));
}

TEST(ReadyBlockTest, TheCurlLineOfAServerForEffectiveBatchingIsAnInference) {
  options::Values values = ValuesFor("m");
  ASSERT_TRUE(values.Set("batching", "static").ok());
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:80", {}),
              HasSubstr("curl http://127.0.0.1:80/inference -H 'Content-Type: application/json' "
                        "-d '{\"prompt\":\"Once upon a time\",\"num_tokens\":60}'\n"));
  ASSERT_TRUE(values.Set("api-profile", "djl").ok());
  EXPECT_THAT(ReadyBlock(values, "127.0.0.1:80", {}), HasSubstr("/invocations"));
}

TEST(ReadyRecordTest, IsARecordOfTheLogWithTheSameFacts) {
  options::Values values = ValuesFor("models/tiny");
  ASSERT_TRUE(values.Set("num-replicas", "2").ok());
  const std::string line = ReadyRecord(values, "127.0.0.1:3000", std::chrono::milliseconds(1234));
  ASSERT_TRUE(line.ends_with("}\n"));
  EXPECT_TRUE(IsLogRecord(std::string_view(line).substr(0, line.size() - 1), true));
  const auto record = boost::json::parse(line);
  EXPECT_THAT(std::string(record.at("message").as_string()), HasSubstr("is ready after 1.2 s"));
  EXPECT_EQ(record.at("level").as_string(), "info");
  EXPECT_EQ(record.at("component").as_string(), "launcher");
  EXPECT_EQ(record.at("timestamp").as_string().size(), 24u);
  EXPECT_EQ(record.at("model").as_string(), "models/tiny");
  EXPECT_EQ(record.at("shards").to_number<int>(), 1);
  EXPECT_EQ(record.at("replicas").to_number<int>(), 2);
  EXPECT_EQ(record.at("address").as_string(), "http://127.0.0.1:3000");
}

TEST(ConsoleTest, AnErrorBeginsWithTheNameOfTheProgram) {
  for (const std::string name : {"penstock-launcher", "text-generation-launcher"}) {
    const options::Values values(options::ProgramAs(options::kLauncher, "/bin/" + name));
    ::testing::internal::CaptureStderr();
    Console(values).Report({.exit_code = 1, .error = "no"});
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), name + ": error: no\n");
  }
}

TEST(ConsoleTest, OnlyTheLossOfAGroupIsAWarning) {
  Console console(ValuesFor("m"));
  ::testing::internal::CaptureStderr();
  console.OnGroup(GroupNews::kTrouble, "group 0 is down");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("[warning] group 0 is down"));
  ::testing::internal::CaptureStderr();
  console.OnGroup(GroupNews::kProgress, "group 0 is being loaded again");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("[info] group 0 is being"));
}

TEST(IsLogRecordTest, TellsOurRecordsFromOtherOutput) {
  EXPECT_TRUE(IsLogRecord("2026-11-21T13:46:23.373Z info  router: listening", false));
  EXPECT_FALSE(IsLogRecord("terminate called after throwing", false));
  EXPECT_FALSE(IsLogRecord("2026-11-21 13:46:23.373Z info", false));
  EXPECT_FALSE(IsLogRecord("", false));
  EXPECT_TRUE(IsLogRecord(R"({"timestamp":"x","message":"y"})", true));
  EXPECT_FALSE(IsLogRecord("2026-11-21T13:46:23.373Z info  router: listening", true));
}

}  // namespace
}  // namespace penstock::launcher
