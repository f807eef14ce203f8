#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_split.h"
#include "common/options/values.h"

namespace penstock::options {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Environment = std::map<std::string, std::string>;

absl::StatusOr<Values> ParseLauncher(std::vector<std::string> arguments, Environment env = {},
                                     std::vector<ConfigEntry> config = {}) {
  Sources sources;
  sources.arguments = std::move(arguments);
  if (!config.empty()) sources.arguments.push_back("--config=server.yaml");
  sources.environment = [env](const std::string& name) -> const char* {
    auto found = env.find(name);
    return found == env.end() ? nullptr : found->second.c_str();
  };
  sources.read_config = [config](const std::string&) { return config; };
  return Parse(ProgramFor(kLauncher), sources);
}

std::vector<std::string> ErrorsOf(const absl::StatusOr<Values>& values) {
  if (values.ok()) return {};
  return absl::StrSplit(values.status().message(), '\n');
}

std::vector<std::string> Launch(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--model-id=m");
  return arguments;
}

TEST(ParseTest, EveryWayOfWriting) {
  absl::StatusOr<Values> values =
      ParseLauncher({"--model-id", "m", "-p", "81", "--host=::1", "-g5", "--json-output",
                     "--num_shard=2", "--served-model-name=a,b"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("model-id"), "m");
  EXPECT_EQ(values->GetInt("port"), 81);
  EXPECT_EQ(values->GetString("hostname"), "::1");
  EXPECT_EQ(values->GetDuration("graceful-termination-timeout"), std::chrono::seconds(5));
  EXPECT_TRUE(values->GetBool("json-output"));
  EXPECT_EQ(values->GetInt("num-shard"), 2);
  EXPECT_EQ(values->GetString("served-model-name"), "a,b");
}

TEST(ParseTest, ARepeatedListGrows) {
  static constexpr OptionSpec kRows[] = {OptionSpec("names", Type::kList, "", "Names.")};
  const ProgramOptions tool = ProgramWith("tool", "A tool.", kRows);
  absl::StatusOr<Values> values = Parse(tool, {.arguments = {"--names=a,b", "--names", "c"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(values->GetList("names"), ElementsAre("a", "b", "c"));
}

TEST(ParseTest, SwitchesTurnOff) {
  for (const char* off : {"--no-json-output", "--json-output=false", "--json-output=0"}) {
    absl::StatusOr<Values> values = ParseLauncher(Launch({"--json-output", off}));
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_FALSE(values->GetBool("json-output")) << off;
  }
}

TEST(ParseTest, CommandLineBeatsEnvironmentBeatsFileBeatsDefault) {
  absl::StatusOr<Values> values =
      ParseLauncher(Launch({"--port=1"}), {{"PENSTOCK_PORT", "2"}, {"PENSTOCK_MAX_BEST_OF", "2"}},
                    {{"port", {"3"}, "server.yaml:1"},
                     {"max_best_of", {"3"}, "server.yaml:2"},
                     {"max-stop-sequences", {"3"}, "server.yaml:3"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetInt("port"), 1);
  EXPECT_EQ(values->SourceOf("port"), Source::kCommandLine);
  EXPECT_EQ(values->GetInt("max-best-of"), 2);
  EXPECT_EQ(values->SourceOf("max-best-of"), Source::kEnvironment);
  EXPECT_EQ(values->GetInt("max-stop-sequences"), 3);
  EXPECT_EQ(values->SourceOf("max-stop-sequences"), Source::kConfigFile);
  EXPECT_EQ(values->SourceOf("io-threads"), Source::kDefault);
  const std::string described = values->Describe();
  EXPECT_THAT(described, HasSubstr("environment (PENSTOCK_MAX_BEST_OF)"));
  EXPECT_THAT(described, HasSubstr("config file (server.yaml:3)"));
  // The defaults are below an empty line.
  EXPECT_LT(described.find("\nmax-stop-sequences = 3"), described.find("\n\n"));
  EXPECT_GT(described.find("\nio-threads = "), described.find("\n\n"));
}

TEST(ParseTest, PrintConfigShowsWhatIsMissing) {
  absl::StatusOr<Values> values = ParseLauncher({"--print-config"}, {});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(values->Describe(), ::testing::StartsWith("model-id = (missing) "));
}

TEST(ParseTest, EnvironmentNamesNeedThePrefix) {
  absl::StatusOr<Values> values =
      ParseLauncher(Launch({}), {{"PORT", "80"}, {"HOSTNAME", "pod-1"}, {"NUM_SHARD", "4"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetInt("port"), 3000);
  EXPECT_EQ(values->GetString("hostname"), "127.0.0.1");
  EXPECT_EQ(values->GetInt("num-shard"), 1);
}

// The errors of a launcher with a model in this environment.
std::vector<std::string> ErrorsIn(const Environment& env) {
  Sources sources;
  sources.arguments = Launch({});
  for (const auto& [name, value] : env) sources.variables.push_back(name);
  sources.environment = [&env](const std::string& name) -> const char* {
    auto found = env.find(name);
    return found == env.end() ? nullptr : found->second.c_str();
  };
  return ErrorsOf(Parse(ProgramFor(kLauncher), sources));
}

TEST(ParseTest, AnUnknownVariableIsAnError) {
  EXPECT_THAT(ErrorsIn({{"PENSTOCK_PROT", "3"}, {"PORT", "80"}, {"PENSTOCK_XYZZY", "1"}}),
              ElementsAre("PENSTOCK_PROT: unknown variable; did you mean PENSTOCK_PORT?",
                          "PENSTOCK_XYZZY: unknown variable"));
}

TEST(ParseTest, VariablesOfOtherProgramsAndOfTheTestsAreKnown) {
  EXPECT_THAT(ErrorsIn({{"PENSTOCK_RANK", "1"},
                        {"PENSTOCK_SHARDS", "unix:/s"},
                        {"PENSTOCK_LONG_TESTS", "1"},
                        {"PENSTOCK_DEPS_DIR", "/deps"},
                        {"PENSTOCK_ISA", "avx2"},
                        {"PENSTOCK_ORACLE_PYTHON", "/bin/python3"},
                        {"PENSTOCK_TRANSFORMERS_PYTHON", "/bin/python3"},
                        {"PENSTOCK_TRANSCRIPTS", "100"},
                        {"PENSTOCK_PROT", ""}}),
              IsEmpty());
}

TEST(ParseTest, VariablesOfAKubernetesServiceAreKnown) {
  EXPECT_THAT(ErrorsIn({{"PENSTOCK_SERVICE_HOST", "10.0.0.7"},
                        {"PENSTOCK_SERVICE_PORT", "3000"},
                        {"PENSTOCK_SERVICE_PORT_HTTP", "3000"},
                        {"PENSTOCK_PORT_3000_TCP", "tcp://10.0.0.7:3000"},
                        {"PENSTOCK_PORT_3000_TCP_ADDR", "10.0.0.7"},
                        {"PENSTOCK_CHAT_PORT_3000_TCP_PROTO", "tcp"},
                        {"PENSTOCK_CHAT_PORT", "tcp://10.0.0.7:3000"}}),
              IsEmpty());
}

TEST(ParseTest, KubernetesServiceLinkIsIgnoredWithAWarning) {
  absl::StatusOr<Values> values =
      ParseLauncher(Launch({}), {{"PENSTOCK_PORT", "tcp://10.0.0.7:3000"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetInt("port"), 3000);
  EXPECT_THAT(values->warnings(), ElementsAre(HasSubstr("PENSTOCK_PORT=tcp://10.0.0.7:3000")));
}

TEST(ParseTest, AllErrorsAreReportedEachWithFieldValueAndLimit) {
  absl::StatusOr<Values> values =
      ParseLauncher({"--port", "70000", "--prot=1", "--dtype=int3", "stray", "--hostname"},
                    {{"PENSTOCK_NUM_SHARD", "two"}},
                    {{"max_best_off", {"1"}, "server.yaml:4"},
                     {"io_threads", {"0"}, "server.yaml:5"},
                     {"order", {"a", "b"}, "server.yaml:6"},
                     {"version", {"1"}, "server.yaml:7"}});
  EXPECT_THAT(ErrorsOf(values),
              ::testing::UnorderedElementsAre(
                  "--port 70000: must be an integer from 0 to 65535",
                  "--prot: unknown option; did you mean --port? --help-all lists the options",
                  "--dtype=int3: must be auto, float32, bfloat16 or float16",
                  "\"stray\": belongs to no option; did you mean --model-id stray?",
                  "--hostname: a value is missing; it must be a non-empty text",
                  "PENSTOCK_NUM_SHARD=two: must be an integer from 1 to 64",
                  "server.yaml:4: max_best_off: unknown option; did you mean max_best_of? "
                  "`penstock serve --help-all` lists the keys",
                  "server.yaml:5: io_threads: 0: must be an integer from 1 to 64",
                  "server.yaml:6: order: must be one value: fcfs, longest-prefix, priority, "
                  "shortest-predicted or learned. Given: a, b",
                  "server.yaml:7: version: belongs on the command line, not into a file"));
}

TEST(ParseTest, AnArgumentWithoutANameIsToldWhatToWrite) {
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--prefix-caching", "false", "extra"}))),
              ElementsAre("\"false\": belongs to no option; write --prefix-caching=false"));
  const auto tool = Parse(ProgramWith("penstock-split", "", {}), {.arguments = {"38", "33", "24"}});
  EXPECT_THAT(ErrorsOf(tool),
              ElementsAre("\"38\": belongs to no option; arguments without a name are not taken"));
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--no-consol"}))),
              ElementsAre("--no-consol: unknown option; did you mean --no-console? --help-all "
                          "lists the options"));
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--served-model-name", ""}))),
              ElementsAre("--served-model-name \"\": must be a non-empty text"));
}

TEST(ParseTest, AKeyThatTurnsASwitchOffIsToldTheSwitch) {
  EXPECT_THAT(
      ErrorsOf(ParseLauncher(Launch({"--no-prefix-caching=true"}), {},
                             {{"no-prefix-caching", {"true"}, "server.yaml:1"}})),
      ::testing::UnorderedElementsAre(
          "server.yaml:1: no-prefix-caching: unknown option; prefix_caching: false turns it "
          "off",
          "--no-prefix-caching: unknown option; --prefix-caching=false turns it off"));
}

TEST(ParseTest, WeightFormatsAreChoicesOfTheTable) {
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--cpu-weights", "int3"}))),
              ElementsAre("--cpu-weights int3: must be auto, plain, compressed or int16"));
  const auto values = ParseLauncher(Launch({"--cpu-weights", "coded"}));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("cpu-weights"), "compressed") << "the former name";
}

TEST(ParseTest, AnOptionBesideItsFormerNameIsAnError) {
  const std::string error =
      "--cpu-products int16: is --cpu-weights by its former name; give --cpu-weights alone";
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--cpu-products", "int16", "--cpu-weights=plain"}))),
              ElementsAre(error));
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({}), {},
                                     {{"cpu_products", {"int16"}, "server.yaml:1"},
                                      {"cpu_weights", {"plain"}, "server.yaml:2"}})),
              ElementsAre(error));
  EXPECT_TRUE(ParseLauncher(Launch({"--cpu-products", "int16"})).ok());
}

TEST(ParseTest, NothingIsCalledMissingAfterAnotherError) {
  EXPECT_THAT(ErrorsOf(ParseLauncher({})),
              ElementsAre(::testing::AllOf(
                  ::testing::StartsWith("--model-id: is required; type `penstock serve FOLDER` "),
                  ::testing::EndsWith("or `penstock serve --demo` for the demo model"))));
  EXPECT_THAT(ErrorsOf(Parse(ProgramFor(kRouter), {})),
              ElementsAre("--model-id: is required; it must be the folder of a model"));
  EXPECT_THAT(ErrorsOf(ParseLauncher({"--model-idd=m"})),
              ElementsAre("--model-idd: unknown option; did you mean --model-id? --help-all "
                          "lists the options"));
  Sources sources;
  sources.arguments = {"--config=/nope.yaml"};
  sources.read_config = [](const std::string& path) {
    return absl::NotFoundError(path + ": cannot be read");
  };
  EXPECT_THAT(ErrorsOf(Parse(ProgramFor(kLauncher), sources)),
              ElementsAre("/nope.yaml: cannot be read"));
}

TEST(ParseTest, ValueOfAnUnknownOptionIsNotASecondError) {
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--prot", "81", "-p", "82"}))),
              ElementsAre("--prot: unknown option; did you mean --port? --help-all lists the "
                          "options"));
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--xyzzy"}))),
              ElementsAre("--xyzzy: unknown option; --help-all lists the options"));
}

TEST(ParseTest, HelpAndVersionNeedNothingElse) {
  absl::StatusOr<Values> values = ParseLauncher({"--help", "--port", "x"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("help"), "common");
  values = ParseLauncher({"--help=all"});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->GetString("help"), "all");
  EXPECT_TRUE(ParseLauncher({"-V"}).ok());
}

TEST(ParseTest, OptionsAreCheckedAgainstEachOther) {
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--max-input-tokens=100", "--max-total-tokens=100"}))),
              ElementsAre("--max-input-tokens 100: must be below --max-total-tokens 100"));
  EXPECT_THAT(ErrorsOf(ParseLauncher(
                  Launch({"--prefill=whole", "--max-input-tokens=100", "--max-step-tokens=64"}))),
              ElementsAre(HasSubstr("--max-input-tokens 100: must be at most")));
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch(
                  {"--engine=transformers", "--num-shard=2", "--speculate=0", "--dtype=f16"}))),
              ElementsAre("--num-shard 2: must be 1 with --engine transformers",
                          "--dtype float16: must be auto or float32 or bfloat16 with --engine "
                          "transformers"));
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({"--max-step-tokens=64"}))), IsEmpty());
}

TEST(ParseTest, VariablesMayHaveTheOtherNameOfAnOption) {
  absl::StatusOr<Values> values = ParseLauncher(Launch({}), {{"PENSTOCK_MAX_MODEL_LEN", "100"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->FindInt("max-total-tokens"), 100);
  EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({}), {{"PENSTOCK_MAX_MODEL_LEN", "100"},
                                                  {"PENSTOCK_MAX_TOTAL_TOKENS", "100"}})),
              ElementsAre("PENSTOCK_MAX_MODEL_LEN: is PENSTOCK_MAX_TOTAL_TOKENS by another name; "
                          "set one of them"));
}

TEST(ParseTest, AFileGivesAnOptionOneName) {
  EXPECT_THAT(ErrorsOf(ParseLauncher(
                  Launch({}), {},
                  {{"host", {"a"}, "server.yaml:1"}, {"hostname", {"b"}, "server.yaml:2"}})),
              ElementsAre("server.yaml:2: hostname: is host by another name; give one of them"));
}

TEST(ParseTest, OriginsHaveASchemeAndNoPath) {
  for (const char* origin : {"http://a/", "https://a/b", "a.example", "//a", "http://"}) {
    EXPECT_THAT(ErrorsOf(ParseLauncher(Launch({std::string("--cors-allow-origin=") + origin}))),
                ElementsAre(HasSubstr("must be * or SCHEME://HOST[:PORT]")))
        << origin;
  }
  EXPECT_THAT(
      ErrorsOf(ParseLauncher(Launch({"--cors-allow-origin=*,http://a:8080,app://b,http://[::1]"}))),
      IsEmpty());
}

TEST(ParseTest, DTypeAliasesBecomeTheCanonicalName) {
  absl::StatusOr<Values> values = ParseLauncher(Launch({"--dtype=BF16"}));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->GetString("dtype"), "bfloat16");
}

TEST(ParseTest, AutoAndUnsetHaveNoNumber) {
  absl::StatusOr<Values> values = ParseLauncher(Launch({}));
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->FindInt("max-step-tokens"), std::nullopt);
  EXPECT_EQ(values->FindInt("max-total-tokens"), std::nullopt);
  EXPECT_EQ(values->FindMemory("kv-cache-memory"), std::nullopt);
  EXPECT_EQ(values->FindInt("port"), 3000);
  EXPECT_TRUE(values->HasValue("max-step-tokens"));
  EXPECT_FALSE(values->HasValue("max-total-tokens"));
}

TEST(ToArgvTest, GivesTheChildTheSameValues) {
  absl::StatusOr<Values> values =
      ParseLauncher(Launch({"--dtype", "half", "--max-total-tokens=2k", "--no-json-output"}));
  EXPECT_FALSE(values.ok());
  values = ParseLauncher(Launch({"--dtype", "half", "--log-level=debug", "--port=0"}),
                         {{"PENSTOCK_BLOCK_SIZE", "32"}});
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_TRUE(values->Set("kv-cache-memory", "1MiB").ok());
  EXPECT_THAT(values->ToArgv(kShard),
              ElementsAre("--model-id=m", "--dtype=float16", "--kv-cache-memory=1MiB",
                          "--block-size=32", "--log-level=debug"));
  std::vector<std::string> arguments = values->ToArgv(kShard);
  arguments.push_back("--shard-uds-path=/tmp/x");
  absl::StatusOr<Values> child = Parse(ProgramFor(kShard), {.arguments = arguments});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->FindMemory("kv-cache-memory")->bytes, 1 << 20);
}

TEST(ToArgvTest, LaterSettingsReplaceEarlierOnes) {
  absl::StatusOr<Values> values = ParseLauncher(Launch({"--port=1", "--port=2"}));
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->GetInt("port"), 2);
}

TEST(ValuesDeathTest, UnknownNamesAbort) {
  Values values(ProgramFor(kRouter));
  EXPECT_DEATH(values.GetInt("step-time"), "not in this program's table");
  EXPECT_DEATH(values.GetInt("hostname"), "read as another type");
}

}  // namespace
}  // namespace penstock::options
