#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/demo_model.h"
#include "cli/man.h"
#include "common/exit_codes.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommandsTest, AMisspeltCommandNamesTheNearest) {
  EXPECT_EQ(NearestCommand("docter"), "doctor");
  EXPECT_EQ(NearestCommand("serv"), "serve");
  EXPECT_EQ(NearestCommand("xyzzy"), "");
  EXPECT_EQ(NearestCommand("foo"), "");  // a third of `fit`
  EXPECT_EQ(cli::Run({"docter"}), kExitUsage);
}

TEST(CommandsTest, HelpListsEveryCommand) {
  for (const Command& command : Commands()) {
    EXPECT_THAT(HelpText(), HasSubstr("  " + std::string(command.name) + " "));
  }
}

TEST(WordsTest, TakesTheModelAndOptionsOut) {
  Words words = {"demo/model", "--port=1", "--demo"};
  EXPECT_EQ(TakeFirst(words), "demo/model");
  EXPECT_EQ(TakeFirst(words), std::nullopt);
  EXPECT_TRUE(TakeSwitch(words, "demo"));
  EXPECT_FALSE(TakeSwitch(words, "demo"));
  EXPECT_THAT(words, ElementsAre("--port=1"));
}

TEST(CommandsTest, WordsThatNobodyReadsAreErrors) {
  EXPECT_EQ(cli::Run({"man", "--bogus"}), kExitUsage);
  EXPECT_EQ(cli::Run({"completion", "bash", "--bogus"}), kExitUsage);
  EXPECT_EQ(cli::Run({"help", "docter"}), kExitUsage);
}

TEST(DemoModelTest, IsFoundInAnInstallationAndInTheSourceTree) {
  const TempFolder folder;
  EXPECT_EQ(FindDemoModel(folder / "build/bin"), std::nullopt);
  folder.Write("demo/model/config.json", "{}");
  EXPECT_EQ(FindDemoModel(folder / "build/bin"), folder / "demo/model");
  folder.Write("build/share/penstock/demo-model/config.json", "{}");
  EXPECT_EQ(FindDemoModel(folder / "build/bin"), folder / "build/share/penstock/demo-model");
}

TEST(ManPageTest, HasCommandsAndOptions) {
  const std::string page = ManPage();
  EXPECT_TRUE(page.starts_with(".TH PENSTOCK 1 "));
  EXPECT_THAT(page, HasSubstr(".SH \"NAME\"\npenstock \\- serve"));
  EXPECT_THAT(page, HasSubstr("\\fBdoctor [MODEL]"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-kv\\-cache\\-memory\\fR"));
}

}  // namespace
}  // namespace penstock::cli
