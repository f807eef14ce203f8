// The warm-up table on disk: which files are accepted.
#include "shard/executor/warmup_table.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(WarmupTable, ReturnsTheTableOfTheSameIdentity) {
  const TempFolder folder;
  const std::string& path = folder.path();
  EXPECT_TRUE(WarmupTable(path, "a machine").Read().empty());
  const std::vector<StepTimeSample> samples = {{512, 0, 0, Duration(5)}, {0, 8, 100, Duration(7)}};
  WarmupTable(path, "a machine").Write(samples);
  EXPECT_EQ(WarmupTable(path, "a machine").Read(), samples);
  EXPECT_TRUE(WarmupTable(path, "another machine").Read().empty());
  for (int i = 0; i < 30; ++i) WarmupTable(path, std::to_string(i)).Write(samples);
  const auto files = std::distance(std::filesystem::directory_iterator(path),
                                   std::filesystem::directory_iterator());
  EXPECT_EQ(files, 16);
  EXPECT_TRUE(WarmupTable(folder / "removed", "a machine").Read().empty());
  WarmupTable("", "nowhere").Write(samples);
}

TEST(WarmupTable, TornAndForeignFilesCountAsAbsent) {
  const TempFolder folder;
  const WarmupTable table(folder.path(), "id");
  table.Write({{1, 0, 0, Duration(5)}});
  const std::string file =
      std::filesystem::directory_iterator(folder.path())->path().filename().string();
  std::ifstream stream(fs::path(folder.path()) / file);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    folder.Write(file, whole.substr(0, i));
    EXPECT_TRUE(table.Read().empty()) << "cut off after " << i;
    std::string damaged = whole;
    damaged[i] = damaged[i] == '7' ? '8' : '7';
    folder.Write(file, damaged);
    EXPECT_TRUE(table.Read().empty()) << damaged;
  }
  folder.Write(file, whole);
  EXPECT_EQ(table.Read().size(), 1u);
}

class ForeignTable : public testing::Test {
 protected:
  ForeignTable() {
    table_.Write(kSamples);
    file_ = fs::directory_iterator(folder_.path())->path();
  }

  // Calls Read and keeps its warnings in warnings_.
  std::vector<StepTimeSample> Read() {
    testing::internal::CaptureStderr();
    const std::vector<StepTimeSample> samples = table_.Read();
    warnings_ = testing::internal::GetCapturedStderr();
    return samples;
  }

  const std::vector<StepTimeSample> kSamples = {{1, 0, 0, Duration(5)}};
  const TempFolder folder_;
  const WarmupTable table_{folder_.path(), "id"};
  fs::path file_;
  std::string warnings_;
};

TEST_F(ForeignTable, OurTableIsPrivate) {
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(Read(), kSamples);
  EXPECT_EQ(warnings_, "");
}

TEST_F(ForeignTable, AWorldWritableTableIsReplaced) {
  ASSERT_EQ(::chmod(file_.c_str(), 0666), 0);
  EXPECT_TRUE(Read().empty());
  EXPECT_THAT(warnings_, HasSubstr(file_.string() + " is writable by everybody"));
  table_.Write(kSamples);
  EXPECT_EQ(Read(), kSamples);
  EXPECT_EQ(warnings_, "");
}

TEST_F(ForeignTable, ATableOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(file_.c_str(), 4321, 4321), 0);
  EXPECT_TRUE(Read().empty());
  EXPECT_THAT(warnings_, HasSubstr(file_.string() + " belongs to user 4321"));
}

TEST_F(ForeignTable, ATableMustBeARegularFile) {
  const std::string elsewhere = folder_.Write("elsewhere", "");
  fs::copy_file(file_, elsewhere, fs::copy_options::overwrite_existing);
  const std::vector<std::function<void()>> things = {
      [&] { ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0); },  // opening it could wait for a writer
      [&] { fs::create_directory(file_); },
      [&] { fs::create_symlink(elsewhere, file_); },
  };
  for (std::size_t i = 0; i < things.size(); ++i) {
    SCOPED_TRACE("thing " + std::to_string(i));
    fs::remove(file_);
    things[i]();
    EXPECT_TRUE(Read().empty());
    EXPECT_THAT(warnings_, HasSubstr(file_.string()));
  }
}

}  // namespace
}  // namespace penstock::shard
