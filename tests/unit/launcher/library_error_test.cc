#include "launcher/library_error.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kLoading = "penstock-shard: error while loading shared libraries: ";
constexpr const char* kNotFound =
    "libtorch_cpu.so: cannot open shared object file: No such file or directory";

// A program that the linker cannot start. It says that the linker tried `file`.
ChildSpec ProgramThatTries(const std::string& file) {
  ChildSpec program;
  program.name = "shard-0";
  program.program = "/bin/sh";
  program.arguments = {"-c", "test \"$LD_DEBUG\" != libs || echo '  7:  trying file=" + file + "'"};
  return program;
}

std::string ErrorOf(const std::string& what, const std::string& tried = "/none/libtorch_cpu.so") {
  return LibraryError(kLoading + what, ProgramThatTries(tried));
}

TEST(LibraryErrorTest, AnAbsentTorchIsNotInstalled) {
  EXPECT_THAT(ErrorOf(kNotFound),
              AllOf(HasSubstr(kNotFound), HasSubstr("torch 2.11 is not installed: run `pip")));
}

TEST(LibraryErrorTest, AWrongFolderOfTorchIsNamed) {
  ::setenv("PENSTOCK_TORCH_DIR", "/opt/none", 1);
  EXPECT_THAT(ErrorOf(kNotFound), HasSubstr("is not installed in PENSTOCK_TORCH_DIR=/opt/none: "));
  ::unsetenv("PENSTOCK_TORCH_DIR");
}

// For the reader a link to itself is like a file without permission, also for root.
TEST(LibraryErrorTest, AnUnreadableTorchIsNamedWithTheReason) {
  const TempFolder folder;
  const std::string file = folder / "libtorch_cpu.so";
  std::filesystem::create_symlink(file, file);
  EXPECT_EQ(ErrorOf(kNotFound, file), file +
                                          ": Too many levels of symbolic links: let the user of "
                                          "the server read the file and enter its folders");
}

TEST(LibraryErrorTest, TellsToReinstallABrokenTorch) {
  for (const char* fault : {"file too short", "invalid ELF header",
                            "ELF load command address/offset not page-aligned"}) {
    const std::string what = "/opt/torch/lib/libtorch_cpu.so: " + std::string(fault);
    EXPECT_THAT(ErrorOf(what), AllOf(HasSubstr(what), HasSubstr("the file is broken"),
                                     HasSubstr("--force-reinstall"), Not(HasSubstr("installed:"))));
  }
}

TEST(LibraryErrorTest, AFileThatCannotBeMappedIsNotBroken) {
  EXPECT_THAT(ErrorOf("/opt/torch/lib/libtorch_cpu.so: failed to map segment from shared object"),
              AllOf(HasSubstr("memory is short"), Not(HasSubstr("broken"))));
}

TEST(LibraryErrorTest, AnotherVersionOfTorchIsSaidToBeOne) {
  for (const std::string line :
       {"shard: symbol lookup error: /x/penstock-shard: undefined symbol: _ZN2at3addE",
        "shard: symbol lookup error: /x/libtorch_cpu.so: undefined symbol: _ZN3c105ErrorE",
        "shard: error while loading shared libraries: /x/libc10.so: version `A_2' not found"}) {
    EXPECT_THAT(LibraryError(line, ProgramThatTries("")),
                HasSubstr("this libtorch is not that of torch 2.11: run `pip install"));
  }
}

TEST(LibraryErrorTest, OtherLibrariesAndLinesHaveNoRemedyOfTorch) {
  EXPECT_EQ(ErrorOf("libfmt.so.9: file too short"), "libfmt.so.9: file too short");
  const std::string absent = "libfmt.so.9: cannot open shared object file: No such file";
  EXPECT_EQ(ErrorOf(absent), absent);
  EXPECT_EQ(LibraryError("an error: libtorch_cpu.so", ProgramThatTries("")), "");
}

}  // namespace
}  // namespace penstock::launcher
