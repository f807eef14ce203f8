#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CompletionTest, EveryShellHasCommandsAndOptions) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = CompletionScript(shell);
    for (const Command& command : Commands()) {
      EXPECT_THAT(script, HasSubstr(std::string(command.name)));
    }
    EXPECT_THAT(script, HasSubstr("kv-cache-memory"));
    EXPECT_THAT(script, HasSubstr("api-key"));
  }
  EXPECT_EQ(CompletionScript("tcsh"), "");
}

TEST(CompletionTest, OffersNothingThatIsRefused) {
  const options::ProgramOptions launcher = FindCommand("serve")->options();
  const std::string script = CompletionScript("bash");
  int refused = 0;
  for (const options::OptionSpec* spec : launcher.options) {
    if (!options::DoesNothing(*spec)) continue;
    ++refused;
    EXPECT_THAT(script, Not(HasSubstr(" --" + std::string(spec->name) + " ")));
  }
  EXPECT_GT(refused, 0);
  EXPECT_THAT(script, HasSubstr(" --quantize ")) << "only some of its values are refused";
}

}  // namespace
}  // namespace penstock::cli
