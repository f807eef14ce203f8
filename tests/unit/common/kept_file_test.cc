// Writing kept files, and the checks of their folder.
// tests/unit/shard/executor/warmup_table_test.cc covers which files are read.
#include "common/kept_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/support/temp_folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class UnfinishedFileTest : public testing::Test {
 protected:
  std::optional<UnfinishedFile> Create() const {
    auto file = UnfinishedFile::Create(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? std::optional(*std::move(file)) : std::nullopt;
  }
  static void Write(const UnfinishedFile& file, const std::string& text) {
    EXPECT_TRUE(
        WriteAt(file.fd(), reinterpret_cast<const std::byte*>(text.data()), text.size(), 0));
  }
  std::ptrdiff_t Files() const {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "kept.kind";
};

TEST_F(UnfinishedFileTest, ReplacesTheOldFileWhenItIsFinished) {
  folder_.Write("kept.kind", "old");
  auto file = Create();
  ASSERT_TRUE(file.has_value());
  Write(*file, "new");
  EXPECT_EQ(TextOf(path_), "old");
  EXPECT_TRUE(file->Finish().ok());
  file.reset();
  EXPECT_EQ(TextOf(path_), "new");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(Files(), 1);
}

TEST_F(UnfinishedFileTest, IsRemovedUnlessItIsFinished) {
  {
    auto file = Create();
    ASSERT_TRUE(file.has_value());
    const auto moved = std::move(file);
    Write(*moved, "half");
    EXPECT_TRUE(IsKeptName(fs::directory_iterator(folder_.path())->path().filename(), ".kind"));
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(UnfinishedFileTest, OfTwoTheLastToFinishStays) {
  auto first = Create();
  auto second = Create();
  ASSERT_TRUE(first.has_value() && second.has_value());
  Write(*first, "first");
  Write(*second, "second");
  EXPECT_TRUE(second->Finish().ok());
  EXPECT_TRUE(first->Finish().ok());
  EXPECT_EQ(TextOf(path_), "first");
  EXPECT_EQ(Files(), 1);
}

TEST_F(UnfinishedFileTest, InAFolderThatIsNoneSaysWhere) {
  const auto file = UnfinishedFile::Create(folder_.Write("file", "") + "/kept.kind");
  EXPECT_THAT(file.status().message(), HasSubstr(folder_ / "file: Not a directory"));
}

TEST(KeptName, HasTheSuffixFinishedOrNot) {
  EXPECT_TRUE(IsKeptName("12ab.kind", ".kind"));
  EXPECT_TRUE(IsKeptName("12ab.kind.x1y2z3.tmp", ".kind"));
  EXPECT_FALSE(IsKeptName("12ab.other", ".kind"));
  EXPECT_FALSE(IsKeptName("12ab.kind.old", ".kind"));
}

class KeptFolder : public testing::Test {
 protected:
  // The result of OpenKeptFolder; its warnings are in warnings_.
  std::string Open(const std::string& path) {
    testing::internal::CaptureStderr();
    std::string opened = OpenKeptFolder("some-option", path);
    warnings_ = testing::internal::GetCapturedStderr();
    return opened;
  }

  const TempFolder folder_;
  std::string warnings_;
};

TEST_F(KeptFolder, IsMadeWithMode0700) {
  const std::string path = folder_ / "a/b";
  EXPECT_EQ(Open(path), path);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  EXPECT_EQ(Open(path), path);
  EXPECT_EQ(warnings_, "");
}

TEST_F(KeptFolder, ThatIsAFileKeepsNothing) {
  const std::string path = folder_.Write("file", "");
  for (const std::string& given : {path, path + "/below"}) {
    EXPECT_EQ(Open(given), "");
    EXPECT_THAT(warnings_, HasSubstr("--some-option " + given +
                                     ": must be a folder, or a path where one can be made (Not a "
                                     "directory); nothing is kept"));
  }
}

}  // namespace
}  // namespace penstock
