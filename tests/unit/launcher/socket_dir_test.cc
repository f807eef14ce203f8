#include "launcher/socket_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>

#include "common/status.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(SocketDirTest, IsPrivateAndRemovesItsContents) {
  TempFolder base;
  std::string path;
  {
    auto dir = SocketDir::Create(base.path());
    ASSERT_TRUE(dir.ok()) << dir.status();
    path = dir->path();
    struct stat info = {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    EXPECT_EQ(dir->SocketPrefix(), path + "/shard");
    std::ofstream(dir->SocketPrefix() + "-0") << "x";
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::is_empty(base.path()));
}

TEST(SocketDirTest, RemovesOnlyFoldersOfEndedLaunchers) {
  TempFolder base;
  auto living = SocketDir::Create(base.path());
  ASSERT_TRUE(living.ok());
  const fs::path root = base.path();
  for (const char* name : {"penstock-dead00", "penstock-nolock", "penstock-longer-name", "other"}) {
    fs::create_directory(root / name);
  }
  for (const char* name : {"penstock-dead00", "penstock-longer-name", "other"}) {
    std::ofstream(root / name / "lock") << "";
  }
  auto next = SocketDir::Create(base.path());
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(fs::exists(root / "penstock-dead00"));
  EXPECT_TRUE(fs::exists(root / "penstock-nolock"));
  EXPECT_TRUE(fs::exists(root / "penstock-longer-name"));
  EXPECT_TRUE(fs::exists(root / "other"));
  EXPECT_TRUE(fs::exists(living->path()));
}

TEST(SocketDirTest, ErrorsNameTheFolderAndTheLimit) {
  EXPECT_THAT(Message(SocketDir::Create("/nowhere/at/all").status()),
              HasSubstr("--socket-dir /nowhere/at/all: must be a folder that can be "
                        "written: No such file"));
  const std::string longest = "/tmp/" + std::string(100, 'x');
  EXPECT_THAT(Message(SocketDir::Create(longest).status()), HasSubstr("at most 81 bytes"));
}

TEST(SocketBaseTest, TakesTheOptionThenTheRuntimeFolder) {
  TempFolder base;
  EXPECT_EQ(SocketBase("/given"), "/given");
  ::setenv("XDG_RUNTIME_DIR", base.path().c_str(), 1);
  EXPECT_EQ(SocketBase(""), base.path());
  ::setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1);
  EXPECT_EQ(SocketBase(""), "/tmp");
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(SocketBase(""), "/tmp");
}

}  // namespace
}  // namespace penstock::launcher
