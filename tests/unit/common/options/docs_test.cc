#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/options/table.h"
#include "tests/unit/support/paths.h"

namespace penstock::options {
namespace {

TEST(OptionsPageTest, IsUpToDate) {
  const std::string path = testing_support::SourcePath("docs/api/options.md");
  if (std::getenv("PENSTOCK_UPDATE_DOCS") != nullptr) std::ofstream(path) << MarkdownPage();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == MarkdownPage())
      << path << " is stale. Run: PENSTOCK_UPDATE_DOCS=1 build/tests/common_options_test";
}

}  // namespace
}  // namespace penstock::options
