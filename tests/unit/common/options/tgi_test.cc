// Every flag and variable in the manual of text-generation-launcher and -router. Each one works,
// sets another option, or is refused or ignored with a reason.
#include "common/options/tgi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "common/options/values.h"
#include "tests/unit/support/paths.h"

namespace penstock::options {
namespace {

using ::testing::_;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Environment = std::map<std::string, std::string>;

absl::StatusOr<Values> ParseAs(const ProgramOptions& program, std::vector<std::string> arguments,
                               const Environment& env = {}) {
  Sources sources;
  sources.arguments = std::move(arguments);
  sources.environment = [&env](const std::string& name) -> const char* {
    auto found = env.find(name);
    return found == env.end() ? nullptr : found->second.c_str();
  };
  return Parse(program, sources);
}

absl::StatusOr<Values> ParseTgi(std::vector<std::string> arguments, Environment env = {}) {
  env.try_emplace("MODEL_ID", "m");
  return ParseAs(ProgramAs(kLauncher, "/usr/bin/text-generation-launcher"), std::move(arguments),
                 env);
}

enum class Fate { kWorks, kNoEffect, kRefused };

// One line of the manual: a flag, a value, its effect, and the option that has the value.
struct Case {
  const char* flag;
  const char* value;  // null: a switch
  Fate fate;
  const char* option = nullptr;  // when not the flag itself
  const char* text = nullptr;    // its value, when not `value`
};

constexpr Case kCases[] = {
    {"model-id", "org/name", Fate::kWorks},
    {"revision", "refs/pr/1", Fate::kWorks},
    {"validation-workers", "4", Fate::kWorks},
    {"sharded", "true", Fate::kWorks},
    {"sharded", "false", Fate::kWorks},
    {"num-shard", "2", Fate::kWorks},
    {"quantize", "awq", Fate::kRefused},
    {"quantize", "fp8", Fate::kWorks},
    {"quantize", "bitsandbytes-nf4", Fate::kRefused},
    {"quantize", "int8", Fate::kWorks},
    {"quantize", "int4", Fate::kWorks},
    {"quantize", "none", Fate::kWorks},
    {"speculate", "2", Fate::kWorks},
    {"speculate", "0", Fate::kWorks},
    {"dtype", "float16", Fate::kWorks},
    {"dtype", "bfloat16", Fate::kWorks},
    {"kv-cache-dtype", "fp8_e4m3fn", Fate::kWorks},
    {"kv-cache-dtype", "fp8_e5m2", Fate::kRefused},
    {"kv-cache-dtype", "auto", Fate::kWorks},
    {"kv-cache-dtype", "int8", Fate::kWorks},
    {"trust-remote-code", nullptr, Fate::kWorks},
    {"max-concurrent-requests", "64", Fate::kWorks},
    {"max-best-of", "4", Fate::kWorks},
    {"max-stop-sequences", "6", Fate::kWorks},
    {"max-top-n-tokens", "8", Fate::kWorks},
    {"max-input-tokens", "100", Fate::kWorks},
    {"max-input-length", "100", Fate::kWorks, "max-input-tokens"},
    {"max-total-tokens", "200", Fate::kWorks},
    {"waiting-served-ratio", "1.2", Fate::kWorks},
    {"max-batch-prefill-tokens", "4096", Fate::kWorks},
    {"max-batch-total-tokens", "100000", Fate::kWorks},
    {"max-waiting-tokens", "7", Fate::kWorks},
    {"max-batch-size", "16", Fate::kWorks},
    {"cuda-graphs", "1,2,4,8,16,32", Fate::kNoEffect},
    {"cuda-graphs", "0", Fate::kWorks},
    {"hostname", "127.0.0.1", Fate::kWorks},
    {"port", "8080", Fate::kWorks},
    {"prometheus-port", "9001", Fate::kNoEffect},
    {"shard-uds-path", "/run/tgi/shard", Fate::kWorks},
    {"master-addr", "10.0.0.1", Fate::kNoEffect},
    {"master-port", "29501", Fate::kNoEffect},
    {"huggingface-hub-cache", "/data", Fate::kWorks},
    {"weights-cache-override", "/data", Fate::kRefused},
    {"disable-custom-kernels", nullptr, Fate::kWorks},
    {"cuda-memory-fraction", "0.5", Fate::kWorks},
    {"cuda-memory-fraction", "1.0", Fate::kWorks},
    {"rope-scaling", "dynamic", Fate::kRefused},
    {"rope-factor", "2.0", Fate::kRefused},
    {"json-output", nullptr, Fate::kWorks},
    {"otlp-endpoint", "http://127.0.0.1:4317", Fate::kWorks},
    {"otlp-service-name", "my-service", Fate::kWorks},
    {"cors-allow-origin", "https://a.example", Fate::kWorks},
    {"api-key", "a:b", Fate::kWorks},
    {"ngrok", nullptr, Fate::kRefused},
    {"ngrok-authtoken", "x", Fate::kRefused},
    {"ngrok-edge", "x", Fate::kRefused},
    {"tokenizer-config-path", "/data/tokenizer_config.json", Fate::kWorks},
    {"disable-grammar-support", nullptr, Fate::kWorks},
    {"watermark-gamma", "0.25", Fate::kWorks},
    {"watermark-delta", "1.5", Fate::kWorks},
    {"env", nullptr, Fate::kWorks},
    {"max-client-batch-size", "8", Fate::kWorks},
    {"lora-adapters", "a=/b", Fate::kWorks, "lora"},
    {"usage-stats", "on", Fate::kNoEffect},
    {"usage-stats", "no-stack", Fate::kNoEffect},
    {"usage-stats", "off", Fate::kWorks},
    {"payload-limit", "1000000", Fate::kWorks},
    {"enable-prefill-logprobs", nullptr, Fate::kWorks},
    {"graceful-termination-timeout", "30", Fate::kWorks},
    {"max-image-fetch-size", "1073741824", Fate::kNoEffect},
};

// Rows that other features bring; without one the flag is refused as unknown.
bool MayHaveNoRow(std::string_view /*flag*/) { return false; }

void CheckCase(const Case& c, const absl::StatusOr<Values>& values) {
  SCOPED_TRACE(std::string("--") + c.flag + " " + (c.value != nullptr ? c.value : ""));
  if (c.fate == Fate::kRefused) {
    ASSERT_FALSE(values.ok());
    EXPECT_THAT(std::string(values.status().message()), HasSubstr(": is not offered; "));
    return;
  }
  ASSERT_TRUE(values.ok()) << values.status();
  const std::string option = c.option != nullptr ? c.option : c.flag;
  EXPECT_EQ(values->TextOf(option), c.value != nullptr ? c.value : "true");
  if (c.fate == Fate::kNoEffect) {
    EXPECT_THAT(values->warnings(), ElementsAre(HasSubstr(": has no effect: ")));
  } else {
    EXPECT_THAT(values->warnings(), IsEmpty());
  }
}

std::string Upper(std::string_view flag) {
  std::string name;
  for (const char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

TEST(TgiFlagsTest, EachFlagWorksOrExplainsWhyNot) {
  for (const Case& c : kCases) {
    const std::string flag = std::string("--") + c.flag;
    std::vector<std::string> arguments = {flag};
    if (c.value != nullptr) arguments.push_back(c.value);
    CheckCase(c, ParseTgi(arguments));
    if (c.value != nullptr) CheckCase(c, ParseTgi({flag + "=" + c.value}));
  }
}

TEST(TgiFlagsTest, EachHasAVariable) {
  for (const Case& c : kCases) {
    CheckCase(c, ParseTgi({}, {{Upper(c.flag), c.value != nullptr ? c.value : "true"}}));
  }
}

TEST(TgiFlagsTest, TheListEqualsThatOfTheManual) {
  for (const TgiFlag& flag : TgiFlags()) {
    if ((flag.components & kLauncher) == 0 || MayHaveNoRow(flag.name)) continue;
    const bool tested = std::any_of(std::begin(kCases), std::end(kCases), [&](const Case& c) {
      return std::string_view(c.flag) == flag.name;
    });
    EXPECT_TRUE(tested) << flag.name;
    EXPECT_NE(Find(ProgramFor(kLauncher), flag.name), nullptr) << flag.name;
  }
}

TEST(TgiFlagsTest, NoneIsSilentlyIgnored) {
  for (const TgiFlag& flag : TgiFlags()) {
    if (!MayHaveNoRow(flag.name) || Find(ProgramFor(kLauncher), flag.name) != nullptr) continue;
    EXPECT_FALSE(ParseTgi({}, {{Upper(flag.name), "x"}}).ok()) << flag.name;
    EXPECT_FALSE(ParseTgi({"--" + std::string(flag.name), "x"}).ok()) << flag.name;
  }
}

TEST(TgiFlagsTest, ShortLetters) {
  auto values = ParseTgi({"-p", "81", "-g", "5", "-e"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetInt("port"), 81);
  EXPECT_EQ(values->GetDuration("graceful-termination-timeout"), std::chrono::seconds(5));
  EXPECT_TRUE(values->GetBool("env"));
}

TEST(TgiFlagsTest, PermissionForCodeNeedsAnEngineUnderOurOwnName) {
  const ProgramOptions ours = ProgramAs(kLauncher, "./penstock-launcher");
  EXPECT_TRUE(ParseAs(ours, {"--model-id=m", "--trust-remote-code", "--engine=transformers"}).ok());
  EXPECT_EQ(ParseAs(ours, {"--model-id=m", "--trust-remote-code"}).status().message(),
            "--trust-remote-code true: must come with --engine transformers");
  EXPECT_EQ(ParseAs(ours, {"--model-id=m", "--python=/usr/bin/python3"}).status().message(),
            "--python /usr/bin/python3: must come with --engine transformers");
  // The launcher passes the flag on.
  EXPECT_TRUE(ParseAs(ProgramFor(kShard), {"--model-id=m", "--trust-remote-code"}).ok());
}

TEST(TgiFlagsTest, PenstockLauncherTakesThemToo) {
  auto values = ParseAs(ProgramAs(kLauncher, "./penstock-launcher"),
                        {"--model-id=m", "--quantize=awq", "--speculate", "0"});
  EXPECT_EQ(
      values.status().message(),
      "--quantize=awq: is not offered; a quantized checkpoint needs no option; int8, int4 on a "
      "CPU and fp8 on a GPU quantize the weights while they load");
}

TEST(TgiProfileTest, DefaultsOfTheLauncher) {
  auto values = ParseTgi({});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("hostname"), "0.0.0.0");
  EXPECT_EQ(values->GetInt("port"), 3000);
  EXPECT_EQ(values->GetBytes("payload-limit"), 2000000);
  EXPECT_EQ(values->GetString("api-profile"), "tgi");
  EXPECT_EQ(values->SourceOf("hostname"), Source::kProfile);
  EXPECT_FALSE(values->IsSet("hostname"));
  // Passed to the router, whose own defaults differ.
  const std::vector<std::string> router = values->ToArgv(kRouter);
  EXPECT_THAT(router, ::testing::IsSupersetOf(
                          {"--hostname=0.0.0.0", "--payload-limit=2000000", "--api-profile=tgi"}));

  auto ours = ParseAs(ProgramAs(kLauncher, "penstock-launcher"), {"--model-id=m"},
                      {{"PORT", "80"}, {"QUANTIZE", "awq"}});
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_EQ(ours->GetString("hostname"), "127.0.0.1");
  EXPECT_EQ(ours->GetInt("port"), 3000);
}

TEST(TgiProfileTest, CommandLineBeatsOurVariablesBeatTheirs) {
  const Environment env = {{"PORT", "80"}, {"PENSTOCK_PORT", "81"}, {"MAX_BEST_OF", "3"}};
  auto values = ParseTgi({"--max-best-of=4"}, env);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetInt("port"), 81);
  EXPECT_EQ(values->GetInt("max-best-of"), 4);
  EXPECT_EQ(ParseTgi({}, {{"PORT", "80"}})->GetInt("port"), 80);
}

TEST(TgiProfileTest, VariablesWithoutAFlag) {
  auto values = ParseTgi({}, {{"LOG_LEVEL", "debug,text_generation_router=info"},
                              {"COMPUTE_TYPE", "2-cpu"},
                              {"PREFIX_CACHING", "0"},
                              {"PREFILL_CHUNKING", "0"},
                              {"HF_HUB_ENABLE_HF_TRANSFER", "1"},
                              {"HF_TOKEN", "x"},
                              {"PORT", ""}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("log-level"), "debug");
  EXPECT_EQ(values->GetString("compute-type"), "2-cpu");
  EXPECT_FALSE(values->GetBool("prefix-caching"));
  EXPECT_EQ(values->GetString("prefill"), "whole");
  EXPECT_THAT(values->warnings(), IsEmpty());
  EXPECT_EQ(ParseTgi({}, {{"LOG_LEVEL", "WARN"}})->GetString("log-level"), "warning");
}

TEST(TgiProfileTest, ThePlainLevelOfALogFilterCountsAtAnyPlace) {
  for (const char* filter : {"h2=error,debug", "text_generation_router=info,h2=warn,debug"}) {
    auto values = ParseTgi({}, {{"LOG_LEVEL", filter}});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ(values->GetString("log-level"), "debug") << filter;
    EXPECT_THAT(values->warnings(), IsEmpty()) << filter;
  }
  EXPECT_THAT(ParseTgi({}, {{"LOG_LEVEL", "h2=debug"}})->warnings(), ElementsAre(_));
}

TEST(TgiProfileTest, OptionsWithoutEffectAreReported) {
  const Environment all = {{"ATTENTION", "paged"},        {"USE_FLASH_ATTENTION", "1"},
                           {"TGI_WIGGLE_ROOM", "0.9"},    {"LOG_COLORIZE", "1"},
                           {"REQUEST_LOGPROBS", "1"},     {"ENV", "production"},
                           {"PORT", "tcp://10.0.0.1:80"}, {"LOG_LEVEL", "loud"}};
  for (const auto& variable : all) {
    auto values = ParseTgi({}, {variable});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT(values->warnings(),
                ElementsAre(AnyOf(HasSubstr("has no effect"), HasSubstr("ignored"))))
        << variable.first;
  }
}

TEST(TgiProfileTest, TwoNamesOfOneOptionAreAnError) {
  EXPECT_THAT(
      std::string(ParseTgi({"--max-input-tokens=5", "--max-input-length", "6"}).status().message()),
      HasSubstr("--max-input-length 6: is --max-input-tokens by another name; give one of them"));
  EXPECT_THAT(
      std::string(ParseTgi({"--max-input-length", "6", "--max-input-tokens=5"}).status().message()),
      HasSubstr("--max-input-tokens=5: is --max-input-length by another name; give one of them"));
  EXPECT_THAT(
      std::string(
          ParseTgi({}, {{"MAX_INPUT_TOKENS", "5"}, {"MAX_INPUT_LENGTH", "6"}}).status().message()),
      HasSubstr("MAX_INPUT_LENGTH: is MAX_INPUT_TOKENS by another name; set one of them"));
}

TEST(TgiProfileTest, AFlagGivenTwiceIsRefusedInTgisWords) {
  const auto said = [](std::vector<std::string> arguments) {
    return std::string(ParseTgi(std::move(arguments)).status().message());
  };
  EXPECT_EQ(said({"--max-best-of", "2", "--max-best-of=3"}),
            "the argument '--max-best-of <MAX_BEST_OF>' cannot be used multiple times");
  EXPECT_EQ(said({"--json-output", "--json-output"}),
            "the argument '--json-output' cannot be used multiple times");
  EXPECT_EQ(said({"--cors-allow-origin", "http://a", "--cors-allow-origin", "http://b"}), "");
  // Under the name penstock-launcher the last one counts.
  auto values = ParseAs(ProgramFor(kLauncher), {"--model-id=/m", "--port=1", "--port=2"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetInt("port"), 2);
}

TEST(TgiProfileTest, EnvNeedsNoModel) {
  const ProgramOptions launcher = ProgramAs(kLauncher, "text-generation-launcher");
  EXPECT_TRUE(ParseAs(launcher, {"--env"}).ok());
  EXPECT_FALSE(ParseAs(launcher, {"--env", "--port=x"}).ok());
  EXPECT_FALSE(ParseAs(launcher, {}).ok());
}

TEST(TgiProfileTest, TheImageForSageMakerIsUnderstood) {
  auto values = ParseAs(ProgramAs(kLauncher, "text-generation-launcher"), {},
                        {{"HF_MODEL_ID", "/opt/ml/model"},
                         {"HF_MODEL_REVISION", "main"},
                         {"SM_NUM_GPUS", "2"},
                         {"HF_MODEL_QUANTIZE", "int8"},
                         {"HF_MODEL_TRUST_REMOTE_CODE", "true"},
                         {"HF_KERNELS_CACHE", "/kernels"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("model-id"), "/opt/ml/model");
  EXPECT_EQ(values->GetInt("num-shard"), 2);
  EXPECT_EQ(values->GetString("quantize"), "int8");
  const auto twice = ParseTgi({}, {{"NUM_SHARD", "1"}, {"SM_NUM_GPUS", "2"}});
  EXPECT_THAT(std::string(twice.status().message()),
              HasSubstr("SM_NUM_GPUS: is NUM_SHARD by another name; set one of them"));
}

TEST(TgiProfileTest, SizesOfGraphsAreIntegers) {
  EXPECT_TRUE(ParseTgi({"--cuda-graphs", "1,2,4"}).ok());
  EXPECT_TRUE(ParseTgi({}, {{"CUDA_GRAPHS", "0"}}).ok());
  EXPECT_THAT(std::string(ParseTgi({"--cuda-graphs", "1,b"}).status().message()),
              HasSubstr("--cuda-graphs 1,b: must be a list of integers of at least 0"));
  EXPECT_FALSE(ParseTgi({}, {{"CUDA_GRAPHS", "x"}}).ok());
  EXPECT_FALSE(ParseTgi({"--cuda-graphs=-1"}).ok());
}

TEST(TgiProfileTest, TheRouterHasItsOwnDefaults) {
  const ProgramOptions router = ProgramAs(kRouter, "text-generation-router");
  EXPECT_THAT(std::string(ParseAs(router, {}).status().message()),
              HasSubstr("--tokenizer-name: is required"));
  auto values = ParseAs(router, {"--tokenizer-name", "/model", "--master-shard-uds-path",
                                 "/run/tgi/server-0", "--max-image-fetch-size", "1"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("model-id"), "/model");
  EXPECT_EQ(values->GetDouble("waiting-served-ratio"), 1.2);
  EXPECT_EQ(values->GetString("hostname"), "0.0.0.0");
}

TEST(SecretsTest, AreNeitherShownNorPassedAsArguments) {
  auto values = ParseTgi({"--api-key", "very-secret"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(values->Describe(), ::testing::Not(HasSubstr("very-secret")));
  for (const std::string& argument : values->ToArgv(kRouter)) {
    EXPECT_THAT(argument, ::testing::Not(HasSubstr("very-secret")));
  }
  EXPECT_THAT(values->ToEnvironment(kRouter), ::testing::Contains("PENSTOCK_API_KEY=very-secret"));
  EXPECT_THAT(values->ToEnvironment(kShard), IsEmpty());
  auto refused = ParseTgi({"--ngrok-authtoken", "very-secret"});
  EXPECT_THAT(std::string(refused.status().message()), ::testing::Not(HasSubstr("very-secret")));
}

// The page has the table between two marks.
TEST(MigrationPageTest, FlagTableIsUpToDate) {
  const std::string path = testing_support::SourcePath("docs/migrate-from-tgi.md");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string page = text.str();
  const std::string begin = "<!-- flags: written by common_options_test -->\n";
  const std::string end = "<!-- end of flags -->";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find(end);
  ASSERT_TRUE(from != page.npos && to != page.npos);
  const std::string fresh =
      page.substr(0, from) + begin + "\n" + TgiMarkdownTable() + "\n" + page.substr(to);
  if (std::getenv("PENSTOCK_UPDATE_DOCS") != nullptr) std::ofstream(path) << fresh;
  EXPECT_TRUE(page == fresh || std::getenv("PENSTOCK_UPDATE_DOCS") != nullptr)
      << path << " is stale. Run: PENSTOCK_UPDATE_DOCS=1 build/tests/common_options_test";
}

}  // namespace
}  // namespace penstock::options
