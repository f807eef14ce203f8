// The page on `/` and its files.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kBrowser = "Accept: text/html,*/*;q=0.8\r\n";

class ConsoleTest : public ApiTest {};

TEST_F(ConsoleTest, ABrowserGetsThePageAndAProbeTheHealthAnswer) {
  const auto page = Get("/", kBrowser);
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.headers.at("content-type"), StartsWith("text/html"));
  EXPECT_THAT(page.body, HasSubstr("console/console.js"));
  const auto probe = Get("/");
  EXPECT_EQ(probe.status, 200);
  EXPECT_EQ(probe.body, "");
}

TEST_F(ConsoleTest, FilesHaveTypesAndAPolicyThatAllowsThisServerAlone) {
  const std::pair<std::string_view, std::string_view> types[] = {
      {"/console/console.js", "text/javascript"},
      {"/console/console.css", "text/css"},
      {"/console/icon.svg", "image/svg+xml"},
  };
  for (const auto& [path, type] : types) {
    const auto file = Get(path);
    EXPECT_EQ(file.status, 200) << path;
    EXPECT_THAT(file.headers.at("content-type"), StartsWith(std::string(type)));
    EXPECT_THAT(file.headers.at("content-security-policy"), StartsWith("default-src 'none';"));
    EXPECT_THAT(file.headers.at("content-security-policy"), Not(HasSubstr("unsafe")));
    EXPECT_EQ(file.headers.at("x-content-type-options"), "nosniff");
    EXPECT_NE(file.body, "");
  }
  EXPECT_EQ(Get("/console/none.js").status, 404);
}

TEST_F(ConsoleTest, AGoodCopyIsNotSentAgain) {
  const std::string tag = Get("/console/chat.js").headers.at("etag");
  ASSERT_THAT(tag, StartsWith("\""));
  const auto again = Get("/console/chat.js", "If-None-Match: " + tag + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(Get("/console/chat.js", "If-None-Match: \"0\"\r\n").status, 200);
}

TEST_F(ConsoleTest, ThePageIsPublicAndTheEventsNeedTheKey) {
  api_.keys = std::make_shared<KeyRing>(*ApiKeys::Parse("secret"));
  EXPECT_EQ(Get("/", kBrowser).status, 200);
  EXPECT_EQ(Get("/console/chat.js").status, 200);
  EXPECT_EQ(Get("/console/events").status, 401);
}

TEST_F(ConsoleTest, NoConsoleTurnsItOff) {
  dialects_.console = false;
  const auto page = Get("/", kBrowser);
  EXPECT_EQ(page.status, 303);
  EXPECT_EQ(page.headers.at("location"), "/docs/");
  EXPECT_EQ(Get("/console/chat.js").status, 404);
}

TEST_F(ConsoleTest, AServerThatStandsInForTgiHasNoPage) {
  dialects_.tgi_only = true;
  EXPECT_EQ(Get("/", kBrowser).body, "");
  EXPECT_EQ(Get("/console/chat.js").status, 404);
}

}  // namespace
}  // namespace penstock::router
