#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "cli/doctor/folder_checks.h"
#include "cli/doctor/machine_checks.h"
#include "cli/doctor/model_checks.h"
#include "cli/doctor/program_checks.h"
#include "cli/doctor/server_checks.h"
#include "common/version.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::int64_t kNow = 1800000000;

TEST(FindingTest, AProblemHasAnAdvice) {
  EXPECT_EQ(LineOf(Good("x")), "ok: x");
  EXPECT_EQ(LineOf(Note("x")), "note: x");
  EXPECT_TRUE(Note("x").ok());
  EXPECT_EQ(LineOf(Bad("x", "y")), "problem: x; try y");
}

TEST(MachineChecksTest, NameTheLimit) {
  EXPECT_TRUE(CheckInstructions(true).ok());
  EXPECT_THAT(CheckInstructions(false).problem, HasSubstr("AVX2"));
  EXPECT_TRUE(CheckOpenFiles(1024).ok());
  EXPECT_THAT(CheckOpenFiles(1023).problem, HasSubstr("1023 files"));
  EXPECT_TRUE(CheckAddressLimit(std::numeric_limits<std::uint64_t>::max(), kGiB).ok());
  EXPECT_THAT(CheckAddressLimit(kGiB / 2, kGiB).problem, HasSubstr("512.0 MiB"));
  EXPECT_TRUE(CheckSharedMemory(0, 1).ok());
  EXPECT_FALSE(CheckSharedMemory(0, 2).ok());
  EXPECT_TRUE(CheckSharedMemory(kGiB, 2).ok());
}

TEST(MachineChecksTest, TheLeastControlGroupCounts) {
  std::vector<MemoryGroup> groups(2);
  EXPECT_TRUE(CheckMemoryGroups(groups).ok());
  groups[0] = {.limit_file = "/outer", .limit_bytes = 8 * kGiB};
  EXPECT_TRUE(CheckMemoryGroups(groups).ok());
  groups[1] = {.limit_file = "/inner", .limit_bytes = 64u << 20};
  EXPECT_THAT(CheckMemoryGroups(groups).problem, HasSubstr("64.0 MiB of memory (/inner)"));
}

TEST(MachineChecksTest, AWrongClockIsFound) {
  EXPECT_TRUE(CheckClock(kNow, kNow, true).ok());
  EXPECT_TRUE(CheckClock(kNow, 0, false).ok());
  EXPECT_FALSE(CheckClock(1000, 0, true).ok());
  EXPECT_THAT(CheckClock(kNow, kNow + 3 * 86400, true).problem, HasSubstr("3 days"));
}

TEST(MachineChecksTest, AProxyMustExemptThisMachine) {
  std::map<std::string, std::string> set = {{"http_proxy", "http://proxy:3128"}};
  const auto environment = [&set](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
  EXPECT_THAT(CheckProxy(environment).problem, HasSubstr("http_proxy=http://proxy:3128"));
  set["no_proxy"] = "example.org,127.0.0.1";
  EXPECT_TRUE(CheckProxy(environment).ok());
  set.clear();
  EXPECT_TRUE(CheckProxy(environment).ok());
}

TEST(ProgramChecksTest, MixedVersionsAreFound) {
  const std::string own(Version());
  EXPECT_TRUE(CheckVersions({{"penstock-router", own}}).ok());
  EXPECT_THAT(CheckVersions({{"penstock-router", own}, {"penstock-shard", "0.0.1"}}).problem,
              HasSubstr("penstock-shard is version 0.0.1"));
  EXPECT_THAT(CheckVersions({{"penstock-router", ""}}).problem, HasSubstr("cannot be started"));
}

class ModelFilesTest : public ::testing::Test {
 protected:
  ModelFilesTest() {
    dir_.Write("config.json", R"({"model_type": "llama"})");
    dir_.Write("tokenizer.json", "{}");
    dir_.Write("chat_template.jinja", "x");
    dir_.Write("model.safetensors", "x");
  }
  // The problems that all checks find.
  std::string Problems() {
    std::string text;
    for (const Finding& finding : CheckModelFiles(dir_.path(), "")) text += finding.problem;
    return text;
  }

  TempFolder dir_;
};

TEST_F(ModelFilesTest, NameWhatIsMissing) {
  EXPECT_EQ(Problems(), "");
  dir_.Write("model.safetensors.index.json", R"({"weight_map": {"a": "model-2.safetensors"}})");
  EXPECT_THAT(Problems(), HasSubstr("lacks the weight file model-2.safetensors"));
  std::filesystem::remove(dir_ / "chat_template.jinja");
  EXPECT_THAT(Problems(), HasSubstr("no chat template"));
  dir_.Write("tokenizer_config.json", R"({"chat_template": "x"})");
  dir_.Write("model.safetensors.index.json", "{}");
  EXPECT_THAT(Problems(), HasSubstr("index.json has no weight_map"));
}

TEST_F(ModelFilesTest, APointerOfGitLfsIsNoWeights) {
  dir_.Write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_THAT(Problems(), HasSubstr("pointer of Git LFS"));
}

TEST(FolderChecksTest, AFileIsNoFolder) {
  const TempFolder folder;
  const std::string file = folder.Write("file", "");
  EXPECT_TRUE(CheckFolder("cache", folder / "new/deep", 1).ok());
  EXPECT_THAT(CheckFolder("cache", file + "/hub", 1).problem, HasSubstr("is no folder"));
  EXPECT_THAT(CheckFolder("cache", folder.path(), 1ull << 60).problem,
              HasSubstr("the disk is full"));
}

TEST(ServerChecksTest, SayWhatAnAnswerMeans) {
  EXPECT_TRUE(CheckBaseUrl("http://h:1/v1/").ok());
  EXPECT_TRUE(CheckBaseUrl("http://h:1").ok());
  EXPECT_THAT(LineOf(CheckBaseUrl("http://h:1/api")), HasSubstr("try http://h:1/v1"));
  EXPECT_FALSE(CheckBaseUrl("h:1").ok());
  EXPECT_TRUE(CheckHealth("u", HttpAnswer{.status = 200}).ok());
  EXPECT_THAT(CheckHealth("u", HttpAnswer{.status = 503}).problem, HasSubstr("not ready"));
  EXPECT_THAT(CheckHealth("u", absl::UnavailableError("refused")).problem, HasSubstr("refused"));
  EXPECT_THAT(CheckAccess(HttpAnswer{.status = 401}, false).problem, HasSubstr("needs a key"));
  EXPECT_THAT(CheckAccess(HttpAnswer{.status = 401}, true).problem, HasSubstr("refuses the key"));
  EXPECT_THAT(CheckAccess(HttpAnswer{.status = 404}, false).problem, HasSubstr("404"));
}

}  // namespace
}  // namespace penstock::cli
