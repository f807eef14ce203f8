// docs/tools.md shows each format with an output, and the option names each.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "router/answer/format.h"
#include "tests/unit/router/answer/docs_examples.h"
#include "tests/unit/router/answer/read_answer.h"
#include "tests/unit/router/answer/transcripts.h"

namespace penstock::router::answer {
namespace {

TEST(Docs, TheExampleOfEachFormatIsACall) {
  const std::string page = testing::ReadFile("docs/tools.md");
  for (const Format* format : Formats()) {
    if (format->header == nullptr) continue;
    const std::string example = testing::ExampleOf(page, format->name);
    const Answer answer = testing::ReadAnswer(format->name, example, testing::SampleTools());
    ASSERT_EQ(answer.calls.size(), 1u) << format->name << ": " << example;
    EXPECT_EQ(answer.calls[0].name, "get_weather") << format->name;
    EXPECT_EQ(answer.calls[0].arguments, "{\"city\": \"Paris\"}") << format->name;
    EXPECT_EQ(answer.text, "") << format->name;
  }
}

TEST(Docs, TheOptionNamesEachFormat) {
  const std::string page = testing::ReadFile("docs/api/options.md");
  const std::size_t line = page.find("| `--tool-format` |");
  ASSERT_NE(line, page.npos);
  const std::string row = page.substr(line, page.find('\n', line) - line);
  const std::string tools = testing::ReadFile("docs/tools.md");
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
