#include "launcher/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::launcher {
namespace {

using ::testing::HasSubstr;

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

TEST(ConsoleTest, AnErrorBeginsWithTheNameOfTheProgram) {
  for (const std::string name : {"penstock-launcher", "text-generation-launcher"}) {
    const options::Values values(options::ProgramAs(options::kLauncher, "/bin/" + name));
    ::testing::internal::CaptureStderr();
    Console(values).Report({.exit_code = 1, .error = "no"});
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), name + ": error: no\n");
  }
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
