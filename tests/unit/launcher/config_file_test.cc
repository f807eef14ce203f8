#include "launcher/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(const std::string& text) {
  return Message(ParseConfigText(text, "server.yaml").status());
}

TEST(ConfigFileTest, GivesEveryEntryWithItsLine) {
  auto entries = ParseConfigText(
      "# a comment\nport: 8080\n\nserved_model_name:\n  - a\n  - b\nhostname: \"::1\"\n", "f.yaml");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].key, "port");
  EXPECT_THAT((*entries)[0].values, ElementsAre("8080"));
  EXPECT_EQ((*entries)[0].where, "f.yaml:2");
  EXPECT_THAT((*entries)[1].values, ElementsAre("a", "b"));
  EXPECT_EQ((*entries)[1].where, "f.yaml:4");
  EXPECT_THAT((*entries)[2].values, ElementsAre("::1"));
}

TEST(ConfigFileTest, NamesWithoutAValueCountAsAbsent) {
  auto entries = ParseConfigText("port:\nhostname: ~\n", "f.yaml");
  ASSERT_TRUE(entries.ok());
  EXPECT_THAT(*entries, IsEmpty());
  EXPECT_THAT(*ParseConfigText("", "f.yaml"), IsEmpty());
}

TEST(ConfigFileTest, ErrorsNameTheLine) {
  EXPECT_EQ(ErrorOf("port: 1\nport: 2\n"),
            "server.yaml:2: port: is given twice, first at server.yaml:1");
  EXPECT_EQ(ErrorOf("\nport:\n  deep: 1\n"),
            "server.yaml:2: port: must be a value or a list, not a map");
  EXPECT_EQ(ErrorOf("names: [a, [b]]\n"), "server.yaml:1: names: must be a list of plain values");
  EXPECT_EQ(ErrorOf("- a\n- b\n"),
            "server.yaml:1: must be lines of `name: value`, such as `port: 3000`");
  EXPECT_THAT(ErrorOf("port 3000\n"), HasSubstr("such as `port: 3000`. Given: port 3000"));
  EXPECT_THAT(ErrorOf("port: 1\nhost: [a\n"), HasSubstr("server.yaml:3: not YAML"));
  EXPECT_THAT(ErrorOf("port\n\n\n3000\n"), HasSubstr("Given: port??3000"));
}

TEST(ConfigFileTest, AMissingFileIsNamed) {
  EXPECT_EQ(Message(ReadConfigFile("/nowhere/x.yaml").status()),
            "--config /nowhere/x.yaml: cannot be read: No such file or directory");
  EXPECT_THAT(Message(ReadConfigFile("/tmp").status()), HasSubstr("--config /tmp: cannot be read"));
}

TEST(ConfigFileTest, UnknownNamesSuggestTheNearestWithTheirLine) {
  TempFolder dir;
  const std::string path = dir.Write("c.yaml", "model_id: m\nmax_total_token: 5\n");
  options::Sources sources;
  sources.arguments = {"--config", path};
  sources.read_config = ReadConfigFile;
  auto values = options::Parse(options::ProgramFor(options::kLauncher), sources);
  EXPECT_EQ(Message(values.status()),
            path +
                ":2: max_total_token: unknown option; did you mean max_total_tokens? "
                "`penstock serve --help-all` lists the keys");
}

}  // namespace
}  // namespace penstock::launcher
