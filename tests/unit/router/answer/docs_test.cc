// docs/tools.md shows each format with an output, and the option names each.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "router/answer/format.h"
#include "tests/unit/router/answer/read_answer.h"
#include "tests/unit/router/answer/transcripts.h"
#include "tests/unit/support/paths.h"

namespace penstock::router::answer {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(testing_support::SourcePath(path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The block of code after the line that begins with the format's name; empty if there is none.
std::string ExampleOf(const std::string& page, std::string_view format) {
  const std::size_t line = page.find("\n`" + std::string(format) + "`");
  if (line == page.npos) return "";
  const std::size_t fence = page.find("\n```", line);
  const std::size_t begin = page.find('\n', fence + 1) + 1;
  const std::string close = "\n" + page.substr(fence + 1, begin - fence - 2) + "\n";
  return page.substr(begin, page.find(close, begin) - begin);
}

TEST(Docs, TheExampleOfEachFormatIsACall) {
  const std::string page = ReadFile("docs/tools.md");
  for (const Format* format : Formats()) {
    if (format->header == nullptr) continue;
    const std::string example = ExampleOf(page, format->name);
    const Answer answer = testing::ReadAnswer(format->name, example, testing::SampleTools());
    ASSERT_EQ(answer.calls.size(), 1u) << format->name << ": " << example;
    EXPECT_EQ(answer.calls[0].name, "get_weather") << format->name;
    EXPECT_EQ(answer.calls[0].arguments, "{\"city\": \"Paris\"}") << format->name;
    EXPECT_EQ(answer.text, "") << format->name;
  }
}

TEST(Docs, TheOptionNamesEachFormat) {
  const std::string page = ReadFile("docs/api/options.md");
  const std::size_t line = page.find("| `--tool-format` |");
  ASSERT_NE(line, page.npos);
  const std::string row = page.substr(line, page.find('\n', line) - line);
  const std::string tools = ReadFile("docs/tools.md");
  for (const Format* format : Formats()) {
    const std::string name(format->name);
    EXPECT_TRUE(row.find(" " + name + ",") != row.npos || row.find(" or " + name) != row.npos ||
                row.find(" " + name + " or") != row.npos)
        << name;
    const bool described = tools.find("| `" + name + "` | ") != tools.npos;
    EXPECT_TRUE(described || name == "none") << name;
  }
}

}  // namespace
}  // namespace penstock::router::answer
