// Files in the making, and the folder of those that are kept. What is taken of others' files:
// tests/unit/shard/executor/warmup_table_test.cc.
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
  std::optional<UnfinishedFile> Open() const {
    auto file = UnfinishedFile::Open(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? std::move(*file) : std::nullopt;
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

TEST_F(UnfinishedFileTest, TakesThePlaceOfTheOldOneWhenItIsFinished) {
  folder_.Write("kept.kind", "old");
  auto file = Open();
  ASSERT_TRUE(file.has_value());
  Write(*file, "new");
  EXPECT_EQ(TextOf(path_), "old");
  EXPECT_TRUE(file->Finish().ok());
  file.reset();
  EXPECT_EQ(TextOf(path_), "new");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(Files(), 1);
}

TEST_F(UnfinishedFileTest, IsGoneWhereItIsNotFinished) {
  {
    auto file = Open();
    ASSERT_TRUE(file.has_value());
    const auto moved = std::move(file);
    Write(*moved, "half");
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(UnfinishedFileTest, OfACrashIsTakenOver) {
  folder_.Write("kept.kind.tmp", "left behind by a crash");
  auto file = Open();
  ASSERT_TRUE(file.has_value());
  Write(*file, "new");
  EXPECT_TRUE(file->Finish().ok());
  EXPECT_EQ(TextOf(path_), "new");
  EXPECT_EQ(Files(), 1);
}

TEST_F(UnfinishedFileTest, IsMadeByOneOfSeveral) {
  auto first = Open();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(Open().has_value());
  Write(*first, "the first one's");
  EXPECT_TRUE(first->Finish().ok());
  EXPECT_EQ(TextOf(path_), "the first one's");
}

TEST_F(UnfinishedFileTest, InAFolderThatIsNoneSaysWhere) {
  const auto file = UnfinishedFile::Open(folder_.Write("file", "") + "/kept.kind");
  EXPECT_THAT(file.status().message(), HasSubstr(folder_ / "file/kept.kind.tmp: Not a directory"));
}

TEST(KeptName, IsOfAFinishedFileOrAnUnfinishedOne) {
  EXPECT_TRUE(IsKeptName("12ab.kind", ".kind"));
  EXPECT_TRUE(IsKeptName("12ab.kind.tmp", ".kind"));
  EXPECT_FALSE(IsKeptName("12ab.other", ".kind"));
  EXPECT_FALSE(IsKeptName("12ab.kind.old", ".kind"));
}

// What OpenKeptFolder gives for a path below, and its warnings.
class KeptFolder : public testing::Test {
 protected:
  std::string Open(const std::string& path) {
    testing::internal::CaptureStderr();
    std::string opened = OpenKeptFolder("some-option", path);
    warnings_ = testing::internal::GetCapturedStderr();
    return opened;
  }

  const TempFolder folder_;
  std::string warnings_;
};

TEST_F(KeptFolder, IsMadeForItsUserAlone) {
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
    EXPECT_THAT(warnings_, HasSubstr("`some-option` must be a folder or a path where one can be "
                                     "made (Not a directory); nothing is kept. Given: " +
                                     given));
  }
}

TEST_F(KeptFolder, ThatOthersMayWriteIsUsedWithAWarning) {
  const std::string& folder = folder_.path();
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_EQ(Open(folder), folder);
  EXPECT_THAT(warnings_, HasSubstr(folder + ", may be written by everybody (mode 0777)"));
  for (const mode_t harmless : {0755, 01777}) {  // of a sticky folder others remove only their own
    ASSERT_EQ(::chmod(folder.c_str(), harmless), 0);
    EXPECT_EQ(Open(folder), folder);
    EXPECT_EQ(warnings_, "");
  }
  if (::geteuid() != 0) return;  // only root can give folders away
  ASSERT_EQ(::chown(folder.c_str(), 4321, 4321), 0);
  EXPECT_EQ(Open(folder), folder);
  EXPECT_THAT(warnings_, HasSubstr(folder + ", belongs to user 4321"));
}

}  // namespace
}  // namespace penstock
