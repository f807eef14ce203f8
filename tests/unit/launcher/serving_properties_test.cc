#include "launcher/serving/serving_properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "common/status.h"
#include "launcher/serving/java_properties.h"
#include "launcher/serving/serving_keys.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

std::vector<std::pair<std::string, std::string>> Pairs(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto properties = ParseJavaProperties(text, "f");
  EXPECT_TRUE(properties.ok()) << properties.status();
  if (!properties.ok()) return pairs;
  for (const Property& property : *properties) pairs.emplace_back(property.key, property.value);
  return pairs;
}

TEST(JavaPropertiesTest, ReadsEverySeparatorAndEscape) {
  EXPECT_THAT(Pairs("a=1\nb: 2\r\nc 3\rd\t=\t4\n e==5\nf\n"),
              ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "3"), Pair("d", "4"),
                          Pair("e", "=5"), Pair("f", "")));
  EXPECT_THAT(Pairs("a\\ b\\=c=x\\ty\\u00e9\\uD83D\\uDE00\\q"),
              ElementsAre(Pair("a b=c", "x\ty\xc3\xa9\xf0\x9f\x98\x80q")));
}

TEST(JavaPropertiesTest, JoinsContinuedLinesWithoutTheirIndentation) {
  EXPECT_THAT(Pairs("list=a,\\\n    b,\\\r\n\tc\nnext=\\\\\nlast=x\\"),
              ElementsAre(Pair("list", "a,b,c"), Pair("next", "\\"), Pair("last", "x")));
}

TEST(JavaPropertiesTest, CommentsAreLinesOrFollowAValue) {
  EXPECT_THAT(Pairs("# one\n  ! two\na=contrastive  # other options: greedy, sample\nb=x#y\n"
                    "c=x \\# y\nd=#z\ne= # nothing\n"),
              ElementsAre(Pair("a", "contrastive"), Pair("b", "x#y"), Pair("c", "x # y"),
                          Pair("d", "#z"), Pair("e", "")));
}

TEST(JavaPropertiesTest, AnErrorNamesTheLineWhereTheEntryBegins) {
  EXPECT_THAT(Message(ParseJavaProperties("a=1\n\nb=\\u12\n", "f.properties").status()),
              HasSubstr("f.properties:3: \\u must be followed by four hexadecimal digits"));
}

// The option values that a file gives.
std::map<std::string, std::string> Options(const std::string& text,
                                           const std::vector<Variable>& environment = {}) {
  const auto settings =
      ParseServingProperties(text, "serving.properties", "/models/m", environment);
  EXPECT_TRUE(settings.ok()) << settings.status();
  std::map<std::string, std::string> options;
  if (!settings.ok()) return options;
  for (const options::ConfigEntry& entry : settings->entries) {
    options[entry.key] = entry.values.front();
  }
  return options;
}

// The source of each option.
std::map<std::string, options::Source> Sources(const std::string& text,
                                               const std::vector<Variable>& environment) {
  std::map<std::string, options::Source> sources;
  const auto settings = ParseServingProperties(text, "serving.properties", "/m", environment);
  EXPECT_TRUE(settings.ok()) << settings.status();
  if (!settings.ok()) return sources;
  for (const options::ConfigEntry& entry : settings->entries) sources[entry.key] = entry.source;
  return sources;
}

TEST(ServingPropertiesTest, EachValueNamesItsSource) {
  auto sources = Sources("option.model_id=a/b\n", {{"OPTION_DTYPE", "fp16"}});
  EXPECT_EQ(sources["model-id"], options::Source::kConfigFile);
  EXPECT_EQ(sources["dtype"], options::Source::kEnvironment);
  EXPECT_EQ(sources["port"], options::Source::kProfile);
}

std::string ErrorOf(const std::string& text) {
  return Message(ParseServingProperties(text, "f", "/m", {}).status());
}

// The example of the seq-scheduler document.
constexpr const char* kSeqSchedulerExample = R"(# serving.properties

engine=MPI
option.model_id=/workspace/llama-2-70b-hf/
option.tensor_parallel_degree=1
option.dtype=fp16
option.trust_remote_code=true

# rolling-batch parameters
option.max_rolling_batch_size=64
option.rolling_batch=scheduler

# seq-scheduler parameters
option.max_sparsity=0.33
option.max_splits=3
option.decoding_strategy=contrastive  # other options: greedy, sample
)";

TEST(ServingPropertiesTest, TheExampleOfSeqSchedulerIsUnderstood) {
  const auto options = Options(kSeqSchedulerExample);
  EXPECT_THAT(options, Contains(Pair("model-id", "/workspace/llama-2-70b-hf/")));
  EXPECT_THAT(options, Contains(Pair("num-shard", "1")));
  EXPECT_THAT(options, Contains(Pair("dtype", "auto")));
  EXPECT_THAT(options, Contains(Pair("max-batch-size", "64")));
  EXPECT_THAT(options, Contains(Pair("split", "sparsity")));
  EXPECT_THAT(options, Contains(Pair("max-sparsity", "0.33")));
  EXPECT_THAT(options, Contains(Pair("max-splits", "3")));
  EXPECT_THAT(options, Contains(Pair("decoding-strategy", "contrastive")));
  EXPECT_THAT(options, Contains(Pair("hostname", "0.0.0.0")));
  EXPECT_THAT(options, Contains(Pair("port", "8080")));
  EXPECT_THAT(options, Contains(Pair("api-profile", "djl")));
  EXPECT_THAT(options, Contains(Pair("max-concurrent-requests", "1064")));
}

TEST(ServingPropertiesTest, Float16IsExplained) {
  const auto settings = ParseServingProperties("option.dtype=fp16", "f", "/m", {});
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->notes, ElementsAre(HasSubstr("CPUs do not compute in float16")));
}

TEST(ServingPropertiesTest, TheFileOverridesTheEnvironment) {
  const std::vector<Variable> environment = {{"OPTION_MODEL_ID", "org/a"},
                                             {"OPTION_MAX_SPLITS", "5"},
                                             {"SERVING_JOB_QUEUE_SIZE", "10"},
                                             {"SERVING_SOMETHING", "x"},
                                             {"HOME", "/root"}};
  const auto options =
      Options("option.max_splits=2\noption.max_rolling_batch_size=4\n", environment);
  EXPECT_THAT(options, Contains(Pair("model-id", "org/a")));
  EXPECT_THAT(options, Contains(Pair("max-splits", "2")));
  EXPECT_THAT(options, Contains(Pair("max-concurrent-requests", "14")));
}

TEST(ServingPropertiesTest, TheQueueExcludesTheRunningBatch) {
  const auto settings = ParseServingProperties(
      "job_queue_size=10\noption.max_rolling_batch_size=4\n", "f", "/m", {}, "6");
  ASSERT_TRUE(settings.ok());
  const auto requests =
      std::ranges::find(settings->entries, "max-concurrent-requests", &options::ConfigEntry::key);
  ASSERT_NE(requests, settings->entries.end());
  EXPECT_EQ(requests->values.front(), "16");
}

TEST(ServingPropertiesTest, WhatTheFileOverridesHasNoEffectAtAll) {
  const auto options =
      Options("option.rolling_batch=disable\n", {{"OPTION_ROLLING_BATCH", "scheduler"}});
  EXPECT_THAT(options, Contains(Pair("batching", "none")));
  EXPECT_FALSE(options.contains("kv-layout"));
  EXPECT_FALSE(options.contains("split"));
}

TEST(ServingPropertiesTest, BatchSizeCountsWithoutRollingBatchesWhateverTheOrder) {
  for (const char* text : {"batch_size=8\noption.rolling_batch=disable\n",
                           "option.rolling_batch=disable\nbatch_size=8\n", "batch_size=8\n"}) {
    EXPECT_THAT(Options(text), Contains(Pair("batching", "static"))) << text;
    EXPECT_THAT(Options(text), Contains(Pair("max-batch-size", "8"))) << text;
  }
  const auto rolling = Options("batch_size=8\noption.rolling_batch=scheduler\n");
  EXPECT_FALSE(rolling.contains("batching"));
  EXPECT_THAT(rolling, Contains(Pair("max-batch-size", "32")));
}

TEST(ServingPropertiesTest, TheLastOfTwoEqualKeysCounts) {
  EXPECT_THAT(Options("option.max_splits=2\noption.max_splits=4\n"),
              Contains(Pair("max-splits", "4")));
}

TEST(ServingPropertiesTest, WithoutAModelTheFolderIsTheModel) {
  TempFolder dir;
  EXPECT_THAT(Options(""), Contains(Pair("model-id", "/models/m")));
  const auto empty = ReadServingProperties(dir.path(), {});
  ASSERT_TRUE(empty.ok()) << empty.status();
  const std::string file = dir.Write("serving.properties", "engine=Python\n");
  for (const std::string& path : {dir.path(), file}) {
    const auto settings = ReadServingProperties(path, {});
    ASSERT_TRUE(settings.ok()) << settings.status();
    const auto is_model = [&](const options::ConfigEntry& entry) {
      return entry.key == "model-id" && entry.values.front() == dir.path();
    };
    EXPECT_TRUE(std::ranges::any_of(settings->entries, is_model));
  }
}

TEST(ServingPropertiesTest, RefusalsNameEveryKeyAndTheReason) {
  const std::string error = ErrorOf(
      "option.quantize=bitsandbytes8\nengine=Python\noption.adapters=x\n"
      "option.rolling_batch=magic\noption.model_id=s3://bucket/model\n");
  EXPECT_THAT(error, HasSubstr("f:1: option.quantize=bitsandbytes8: is not taken. A quantized "
                               "checkpoint needs no option"));
  EXPECT_THAT(error, HasSubstr("f:3: option.adapters=x: is not taken. Adapters"));
  EXPECT_THAT(error, HasSubstr("f:4: option.rolling_batch=magic: must be scheduler, auto"));
  EXPECT_THAT(error, HasSubstr("f:5: option.model_id=s3://bucket/model: must be a folder"));
}

TEST(ServingPropertiesTest, UnknownKeysAreNamedAndIgnored) {
  const auto settings =
      ParseServingProperties("option.max_sparcity=0.1\noption.zzz=1\n", "f", "/m", {});
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->warnings,
              ElementsAre("f:1: option.max_sparcity: unknown, ignored; did you mean "
                          "option.max_sparsity?",
                          "f:2: option.zzz: unknown, ignored"));
}

TEST(ServingPropertiesTest, BadValuesAreRefusedWithTheirLine) {
  TempFolder dir;
  const std::string file =
      dir.Write("serving.properties", "option.model_id=x\noption.max_sparsity=1.5\n");
  options::Sources sources;
  sources.read_more = [&](const auto&) -> absl::StatusOr<std::vector<options::ConfigEntry>> {
    return ReadServingProperties(file, {})->entries;
  };
  const auto values = options::Parse(options::ProgramFor(options::kLauncher), sources);
  EXPECT_EQ(Message(values.status()), file +
                                          ":2: option.max_sparsity: max-sparsity: 1.5: must be a "
                                          "number from 0 to 1");
}

// What `source` adds on the command line `arguments`.
std::string Added(const std::vector<std::string>& arguments) {
  ServingSource source;
  options::Sources sources;
  sources.arguments = arguments;
  sources.read_more = source.Reader();
  const auto values = options::Parse(options::ProgramFor(options::kLauncher), sources);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? source.Describe(*values) : "";
}

TEST(ServingSourceTest, DescribesOnlyWhatCounts) {
  TempFolder dir;
  const std::string file =
      dir.Write("serving.properties", "option.model_id=x\noption.max_sparsity=0.5\n");
  EXPECT_EQ(Added({"--serving-properties", file, "--port", "3000", "--model-id", "y"}),
            file +
                " sets: --api-profile djl --hostname 0.0.0.0 --max-batch-size 32 "
                "--max-concurrent-requests 1032 --max-sparsity 0.5 --payload-limit 64MiB");
  EXPECT_EQ(Added({"--model-id", "y"}), "");
}

TEST(ServingSourceTest, AnAbsentFolderOfContainersIsNotNamed) {
  if (std::filesystem::exists(kDjlModelFolder)) GTEST_SKIP() << "this machine has the folder";
  const std::string text = Added({"--api-profile", "djl", "--model-id", "demo/model"});
  EXPECT_THAT(text, StartsWith("--api-profile djl sets, where nothing else does: --hostname "));
  EXPECT_THAT(text, Not(HasSubstr(std::string(kDjlModelFolder))));
}

// Each key with a value of every kind of row.
TEST(ServingPropertiesTest, EveryKeyIsHonouredMappedOrRefusedByName) {
  const options::ProgramOptions launcher = options::ProgramFor(options::kLauncher);
  for (const ServingKey& key : ServingKeys()) {
    EXPECT_FALSE(key.text.empty()) << key.name;
    if (key.use == KeyUse::kMapped && key.apply == nullptr) {
      EXPECT_NE(options::Find(launcher, key.to), nullptr) << key.name;
    }
    if (key.use != KeyUse::kRefused) continue;
    EXPECT_FALSE(ApplyServingKey(key, "surely-not-neutral").error.empty()) << key.name;
  }
}

TEST(ServingPropertiesTest, ThePageIsUpToDate) {
  const std::string path = testing_support::SourcePath("docs/api/serving-properties.md");
  if (std::getenv("PENSTOCK_UPDATE_DOCS") != nullptr) std::ofstream(path) << ServingKeysPage();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == ServingKeysPage())
      << path << " is stale. Run: PENSTOCK_UPDATE_DOCS=1 build/tests/launcher_test";
}

}  // namespace
}  // namespace penstock::launcher
