#include "launcher/tgi_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "launcher/preflight.h"
#include "launcher/runtime_environment.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

using ::testing::HasSubstr;

options::Values Parsed(std::vector<std::string> arguments,
                       const char* name = "text-generation-launcher") {
  arguments.insert(arguments.begin(), "--model-id=m");
  auto values = options::Parse(options::ProgramAs(options::kLauncher, name),
                               {.arguments = std::move(arguments)});
  EXPECT_TRUE(values.ok()) << values.status();
  return *std::move(values);
}

// Value of an option after the rules, or the error.
std::string After(std::vector<std::string> arguments, std::string_view option, std::size_t gpus = 0,
                  const char* name = "text-generation-launcher") {
  options::Values values = Parsed(std::move(arguments), name);
  const absl::Status status = ApplyTgiRules(values, gpus);
  return status.ok() ? values.TextOf(option) : "error: " + std::string(status.message());
}

TEST(TgiRulesTest, ShardedCountsRanks) {
  EXPECT_EQ(After({}, "num-shard", 4), "1");  // on the CPU
  EXPECT_EQ(After({"--device=cuda"}, "num-shard", 4), "4");
  EXPECT_EQ(After({"--device=cuda"}, "num-shard", 4, "penstock-launcher"), "1");
  EXPECT_EQ(After({"--device=cuda", "--sharded=false"}, "num-shard", 4), "1");
  EXPECT_EQ(After({"--sharded=true"}, "num-shard", 4), "4");
  EXPECT_EQ(After({"--sharded=true", "--num-shard=2"}, "num-shard", 4), "2");
  EXPECT_EQ(After({"--sharded=false", "--num-shard=2"}, "num-shard", 0), "2");
  EXPECT_THAT(After({"--sharded=true"}, "num-shard", 1), HasSubstr("Given: --num-shard 1, 1 GPUs"));
  EXPECT_THAT(After({"--sharded=true", "--num-shard=1"}, "num-shard", 8), HasSubstr("error: "));
}

TEST(TgiRulesTest, CustomKernelsAreABackend) {
  EXPECT_EQ(After({"--disable-custom-kernels"}, "backend"), "reference");
  EXPECT_EQ(After({"--disable-custom-kernels", "--backend=reference"}, "backend"), "reference");
  EXPECT_THAT(After({"--disable-custom-kernels", "--backend=cpu"}, "backend"),
              HasSubstr("must not come with --backend cpu"));
  EXPECT_EQ(After({}, "backend"), "auto");
}

TEST(TgiRulesTest, AHostnameThatIsNoAddressIsAllOfThem) {
  EXPECT_EQ(After({"--hostname=5f3a1c0de9ab"}, "hostname"), "0.0.0.0");
  EXPECT_EQ(After({"--hostname=127.0.0.1"}, "hostname"), "127.0.0.1");
  EXPECT_EQ(After({"--hostname=::1"}, "hostname"), "::1");
  EXPECT_EQ(After({"--hostname=localhost"}, "hostname", 0, "penstock-launcher"), "localhost");
}

TEST(SocketPrefixTest, TheFolderMustBePrivate) {
  const TempFolder folder;
  const std::string path = folder.path();
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_TRUE(CheckSocketPrefix("").ok());
  EXPECT_TRUE(CheckSocketPrefix(path + "/shard").ok());
  EXPECT_TRUE(CheckSocketPrefix(path + "/missing/shard").ok());
  std::filesystem::permissions(path, std::filesystem::perms(0755));
  EXPECT_THAT(std::string(CheckSocketPrefix(path + "/shard").message()),
              HasSubstr("--shard-uds-path " + path + "/shard: the folder " + path));
}

TEST(RuntimeEnvironmentTest, HasTheLinesOfBugReports) {
  EXPECT_THAT(RuntimeEnvironment(true),
              ::testing::ContainsRegex("^Runtime environment:\nTarget: .+\nCargo version: .+\n"
                                       "Commit sha: .+\nDocker label: .+\nnvidia-smi:\n"));
  const std::string own = RuntimeEnvironment(false);
  EXPECT_THAT(own, ::testing::ContainsRegex("^Runtime environment:\nTarget: .+\nnvidia-smi:\n"));
  EXPECT_THAT(own, ::testing::Not(HasSubstr("xpu-smi")));
}

}  // namespace
}  // namespace penstock::launcher
