#include "common/options/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/options/values.h"

namespace penstock::options {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Components kPrograms[] = {kLauncher, kRouter, kShard, kSimshard};

TEST(TableTest, NamesAreUniqueInEveryProgram) {
  for (Components component : kPrograms) {
    std::set<std::string> names;
    std::set<char> letters;
    for (const OptionSpec* spec : ProgramFor(component).options) {
      EXPECT_TRUE(names.insert(std::string(spec->name)).second) << spec->name;
      if (spec->short_name != 0) {
        EXPECT_TRUE(letters.insert(spec->short_name).second) << spec->name;
      }
      std::string_view rest = spec->aliases;
      while (!rest.empty()) {
        std::string_view alias = rest.substr(0, rest.find('|'));
        rest.remove_prefix(std::min(rest.size(), alias.size() + 1));
        EXPECT_TRUE(names.insert(std::string(alias)).second) << alias;
      }
    }
  }
}

TEST(TableTest, EveryRowIsComplete) {
  for (const OptionSpec& spec : Table()) {
    EXPECT_NE(spec.components, 0u) << spec.name;
    EXPECT_TRUE(spec.help.ends_with('.')) << spec.name;
    EXPECT_EQ(spec.required & ~spec.components, 0u) << spec.name;
    EXPECT_EQ(spec.type == Type::kEnum, !spec.choices.empty()) << spec.name;
    EXPECT_EQ(spec.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), spec.name.npos)
        << spec.name;
  }
}

TEST(TableTest, DefaultsAreAccepted) {
  for (Components component : kPrograms) Values values(ProgramFor(component));
}

TEST(TableTest, NamesFollowFromTheRow) {
  const OptionSpec* spec = Find(ProgramFor(kRouter), "max-step-tokens");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(EnvironmentName(*spec), "PENSTOCK_MAX_STEP_TOKENS");
  EXPECT_EQ(YamlKey(*spec), "max_step_tokens");
}

TEST(TableTest, FindsByAliasAndWithUnderscores) {
  ProgramOptions router = ProgramFor(kRouter);
  ASSERT_NE(Find(router, "max_input_length"), nullptr);
  EXPECT_EQ(Find(router, "max_input_length"), Find(router, "max-input-tokens"));
  EXPECT_EQ(Find(router, "step-time"), nullptr);
}

TEST(TableTest, SuggestsTheNearestName) {
  ProgramOptions launcher = ProgramFor(kLauncher);
  EXPECT_EQ(Nearest(launcher, "max-total-token"), "max-total-tokens");
  EXPECT_EQ(Nearest(launcher, "prot"), "port");
  EXPECT_EQ(Nearest(launcher, "num_shards"), "num-shard");
  EXPECT_EQ(Nearest(launcher, "graceful"), "graceful-termination-timeout");
  EXPECT_EQ(Nearest(launcher, "xyzzy"), "");
}

TEST(HelpTest, ShowsCommonOptionsInGroupsAndAdvancedOnesOnRequest) {
  ProgramOptions launcher = ProgramFor(kLauncher);
  const std::string common = HelpText(launcher, "common");
  EXPECT_THAT(common, HasSubstr("\nChoose a model:\n"));
  EXPECT_THAT(common, HasSubstr("  -p, --port N"));
  EXPECT_THAT(common, HasSubstr("[3000]"));
  EXPECT_THAT(common, Not(HasSubstr("--io-threads")));
  EXPECT_THAT(HelpText(launcher, "all"), HasSubstr("--io-threads"));
  EXPECT_THAT(HelpText(launcher, "sched"), Not(HasSubstr("--port")));
  EXPECT_THAT(HelpText(launcher, "nonsense"), HasSubstr("No group"));
  EXPECT_THAT(HelpText(launcher, "nonsense"), HasSubstr("\n  Reach the server\n"));
}

// The lines of one option.
std::string EntryOf(const std::string& help, const OptionSpec& spec) {
  const std::string head =
      spec.short_name == 0 ? "\n      --" : std::string("\n  -") + spec.short_name + ", --";
  std::size_t begin = help.find(head + std::string(spec.name) + " ");
  if (begin == help.npos) begin = help.find(head + std::string(spec.name) + "\n");
  std::size_t end = begin;
  do {
    end = help.find('\n', end + 1);
  } while (help.compare(end + 1, 10, std::string(10, ' ')) == 0);
  return help.substr(begin, end - begin);
}

TEST(HelpTest, ShowsEveryDefault) {
  for (Components component : kPrograms) {
    const ProgramOptions program = ProgramFor(component);
    const std::string help = HelpText(program, "all");
    for (const OptionSpec* spec : program.options) {
      if (spec->group == "Program") continue;
      if (spec->set_by_launcher && component == kLauncher) continue;
      const std::string entry = EntryOf(help, *spec);
      if (spec->default_text.empty()) {
        EXPECT_THAT(entry, AnyOf(HasSubstr("nset: "), HasSubstr("[unset]"), HasSubstr("nset:\n"),
                                 HasSubstr("[required]")));
      } else if (spec->type == Type::kBool && spec->default_text == "true") {
        EXPECT_THAT(entry, HasSubstr("--no-" + std::string(spec->name) + "]"));
      } else {
        EXPECT_THAT(entry, HasSubstr("[" + std::string(spec->default_text) + "]"));
      }
    }
  }
}

TEST(HelpTest, ShowsTheChoicesOfAnOption) {
  const ProgramOptions launcher = ProgramFor(kLauncher);
  const std::string help = HelpText(launcher, "all");
  const std::string quantize = EntryOf(help, *Find(launcher, "quantize"));
  EXPECT_THAT(quantize, HasSubstr("--quantize CHOICE"));
  EXPECT_THAT(quantize, HasSubstr("One of none, int8, "));
  // Its text says what true and false mean.
  EXPECT_THAT(EntryOf(help, *Find(launcher, "sharded")), Not(HasSubstr("One of")));
}

TEST(HelpTest, HidesWhatTheLauncherSets) {
  EXPECT_THAT(HelpText(ProgramFor(kLauncher), "all"), Not(HasSubstr("--hub-commit")));
  EXPECT_THAT(HelpText(ProgramFor(kRouter), "all"), HasSubstr("--hub-commit"));
}

TEST(HelpTest, ShowsTheDefaultsOfTheProfile) {
  const std::string help = HelpText(ProgramAs(kLauncher, "text-generation-launcher"), "");
  EXPECT_THAT(help, HasSubstr("[0.0.0.0]"));
  EXPECT_THAT(help, Not(HasSubstr("[127.0.0.1]")));
}

TEST(HelpTest, HidesAdvancedOptionsUntilAllAreAsked) {
  for (Components component : {kLauncher, kRouter}) {
    const ProgramOptions program = ProgramFor(component);
    EXPECT_THAT(HelpText(program, ""), HasSubstr("--help-all shows every option"));
    EXPECT_THAT(HelpText(program, ""), Not(HasSubstr("--step-timeout")));
    EXPECT_THAT(HelpText(program, "all"), HasSubstr("--step-timeout"));
  }
  EXPECT_THAT(HelpText(ProgramFor(kRouter), ""), HasSubstr("--shards"));
  EXPECT_THAT(HelpText(ProgramFor(kShard), ""), HasSubstr("--shard-listen"));
}

TEST(HelpTest, LinesFitTheScreen) {
  for (Components component : kPrograms) {
    std::string help = HelpText(ProgramFor(component), "all");
    std::size_t start = 0;
    while (start < help.size()) {
      const std::size_t end = help.find('\n', start);
      EXPECT_LE(end - start, 100u) << help.substr(start, end - start);
      start = end + 1;
    }
  }
}

TEST(ProgramWithTest, ToolsHaveTheirOwnRows) {
  static constexpr OptionSpec kRows[] = {OptionSpec("rate", Float(0), "1", "Per second.")};
  ProgramOptions bench = ProgramWith("penstock-bench", "Measures a server.", kRows);
  absl::StatusOr<Values> values = Parse(bench, {.arguments = {"--rate", "2.5"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_DOUBLE_EQ(values->GetDouble("rate"), 2.5);
  EXPECT_THAT(HelpText(bench, "common"), HasSubstr("--rate X"));
  EXPECT_THAT(HelpText(bench, "common"), HasSubstr("\nOptions:\n"));
  EXPECT_EQ(Find(bench, "port"), nullptr);
}

}  // namespace
}  // namespace penstock::options
