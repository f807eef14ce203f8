// Where tests find files: the checkout's own, and optional inputs beside it.
#pragma once

#include <string>

namespace penstock::testing_support {

// The absolute path of a file of the checkout. `relative` starts at its root. PENSTOCK_SOURCE_ROOT,
// if set, is the root, for tests that run on another machine.
std::string SourcePath(const std::string& relative);

// The folder with a tiny checkpoint per variant of each model type (tests/oracle), which the build
// makes beside the test programs.
std::string ModelCheckpoints();

// Optional test inputs: real tokenizers, templates and goldens, found through PENSTOCK_SHARED_DATA
// (default: shared/data beside the checkout). Empty when the file or folder is not there.
std::string SharedData(const std::string& relative);

}  // namespace penstock::testing_support

// Ends the test as skipped when `relative` is absent; else defines `path`.
#define PENSTOCK_SHARED_OR_SKIP(path, relative)                               \
  const std::string path = ::penstock::testing_support::SharedData(relative); \
  if (path.empty()) {                                                         \
    GTEST_SKIP() << "shared data " << (relative)                              \
                 << " is absent (set PENSTOCK_SHARED_DATA to its folder)";    \
  }
