#include "router/main/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/support/temp_folder.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

options::Values RouterValues(std::vector<std::string> arguments) {
  options::Sources sources;
  sources.arguments = std::move(arguments);
  sources.arguments.insert(sources.arguments.begin(), "--model-id=m");
  auto values = Parse(options::ProgramFor(options::kRouter), sources);
  EXPECT_TRUE(values.ok()) << values.status();
  return *std::move(values);
}

TEST(SettingsTest, FilesOfStepsAndInputsMustBeWritable) {
  const TempFolder folder;
  for (const std::string name : {"step-log", "record"}) {
    const auto check = [&](const std::string& path) {
      return std::string(CheckLogFiles(RouterValues({"--" + name + "=" + path})).message());
    };
    EXPECT_EQ(check(folder / "new"), "");
    EXPECT_FALSE(std::filesystem::exists(folder / "new"));
    EXPECT_EQ(check(folder.Write("old", "text")), "");
    EXPECT_EQ(check("new-in-this-folder"), "");
    const std::string option = "--" + name + " ";
    EXPECT_EQ(check("/none/steps"), option +
                                        "/none/steps: must be a writable file: No such file "
                                        "or directory");
    EXPECT_EQ(check(folder.path()), option + folder.path() +
                                        ": must be a writable file: Is a "
                                        "directory");
    EXPECT_THAT(check(folder / "old/steps"), HasSubstr("Not a directory"));
  }
}

GroupFormed FormedWith(std::uint32_t blocks) {
  GroupFormed formed;
  formed.capacity.blocks = blocks;
  formed.capacity.block_size = 16;
  formed.capacity.max_sequence_length = 2048;
  return formed;
}

TEST(SettingsTest, ACacheThatShortensRequestsIsAWarning) {
  const options::Values values = RouterValues({});
  EXPECT_EQ(ShortContextWarning(values, FormedWith(128)), "");
  EXPECT_THAT(ShortContextWarning(values, FormedWith(10)),
              StartsWith("the KV cache holds 160 tokens, so max_total_tokens is 160 instead of "
                         "2048: a larger --kv-cache-memory"));
  EXPECT_EQ(ShortContextWarning(RouterValues({"--max-total-tokens=100"}), FormedWith(10)), "");
}

}  // namespace
}  // namespace penstock::router
