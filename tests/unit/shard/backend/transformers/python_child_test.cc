#include "shard/backend/transformers/python_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/status.h"

namespace penstock::shard::transformers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace fs = std::filesystem;

// A program in a folder of the test that runs `command`.
std::string Program(const std::string& name, const std::string& command) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << "#!/bin/sh\n" << command << "\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

TEST(FindPythonTest, NamesTheOptionIfTheInterpreterCannotBeRun) {
  for (const char* given : {"/nowhere/python3", "/tmp", "no-such-python"}) {
    const auto found = FindPython(given);
    EXPECT_TRUE(absl::IsUnavailable(found.status()));
    EXPECT_EQ(Message(found.status()),
              "--python " + std::string(given) + ": must be a Python interpreter that can be run");
  }
}

TEST(FindPythonTest, TakesThatOfTheActiveEnvironment) {
  const std::string folder = ::testing::TempDir() + "environment";
  fs::create_directories(folder + "/bin");
  const std::string python = Program("environment/bin/python3", "true");
  ::setenv("VIRTUAL_ENV", folder.c_str(), 1);
  EXPECT_EQ(*FindPython(""), python);
  ::unsetenv("VIRTUAL_ENV");
  EXPECT_NE(FindPython("").value_or(""), python);
}

TEST(PythonChildTest, NamesThePackagesThatAreMissing) {
  const auto python = FindPython("python3");
  if (!python.ok()) GTEST_SKIP() << python.status();
  // -S hides all installed packages.
  const std::string bare = Program("bare-python", "exec " + *python + " -S \"$@\"");
  const auto child = PythonChild::Start(bare, 1);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto reply = (*child)->Call({{"call", "describe"}});
  EXPECT_TRUE(absl::IsUnavailable(reply.status()));
  EXPECT_THAT(Message(reply.status()),
              AllOf(StartsWith("--engine transformers: "),
                    HasSubstr("torch and transformers and safetensors cannot be found"),
                    HasSubstr(" -m pip install 'torch>=2.4' 'transformers>=5.0'")));
}

TEST(PythonChildTest, ALostProcessSaysHowItEnded) {
  auto ends = PythonChild::Start(Program("ends", "exit 3"), 1);
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_EQ(Message((*ends)->Call({{"call", "load"}}).status()),
            "the Python process of --engine transformers ended with status 3");

  auto killed = PythonChild::Start(Program("waits", "exec sleep 100"), 1);
  ASSERT_TRUE(killed.ok()) << killed.status();
  ASSERT_EQ(::kill((*killed)->pid(), SIGKILL), 0);
  for (int i = 0; i < 2; ++i) {
    const auto reply = (*killed)->Call({{"call", "load"}});
    EXPECT_TRUE(absl::IsUnavailable(reply.status()));
    EXPECT_THAT(Message(reply.status()), HasSubstr("was killed by signal 9 (SIGKILL)"));
  }
  EXPECT_TRUE(absl::IsUnavailable((*killed)->Send({{"call", "release"}})));
}

TEST(PythonChildTest, TheDestructorEndsTheProcess) {
  auto child = PythonChild::Start(Program("waits-too", "exec sleep 100"), 1);
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t pid = (*child)->pid();
  child->reset();
  EXPECT_NE(::kill(pid, 0), 0);
}

}  // namespace
}  // namespace penstock::shard::transformers
