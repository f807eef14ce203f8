// Compares LoRA adapters with PEFT by the goldens of tests/data/goldens/adapters: on each backend,
// on one and two ranks, with the prompt whole and in chunks. On backend cpu a row has the same bits
// in a batch as alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "shard/adapters/lora_adapter.h"
#include "tests/unit/shard/backend/model_checkpoints.h"
#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

constexpr float kBound = 1e-4f;
constexpr std::size_t kWhole = 128;
constexpr const char* kNames[] = {"fused", "rslora", "patterns", "separate", "by_head", "conv1d"};
constexpr const char* kOfOneBase[] = {"fused", "rslora", "patterns"};

struct Row {
  std::size_t position = 0;
  std::vector<std::pair<TokenId, float>> logits;
};

struct Golden {
  std::string name, base;
  std::vector<TokenId> text;
  std::vector<Row> rows;
  std::vector<TokenId> Begin(std::size_t count) const {
    return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count)};
  }
};

Golden ReadGolden(const std::string& name) {
  std::ifstream file(testing_support::SourcePath("tests/data/goldens/adapters/" + name + ".json"));
  std::ostringstream text;
  text << file.rdbuf();
  const json::value root = json::parse(text.str());
  Golden golden{name,
                json::value_to<std::string>(root.at("base")),
                json::value_to<std::vector<TokenId>>(root.at("prompt")),
                {}};
  const auto sample = json::value_to<std::vector<TokenId>>(root.at("sample"));
  for (const json::value& item : root.at("rows").as_array()) {
    Row& row = golden.rows.emplace_back();
    row.position = item.at("position").to_number<std::size_t>();
    for (const json::value& pair : item.at("top").as_array()) {
      row.logits.emplace_back(pair.at(0).to_number<TokenId>(), pair.at(1).to_number<float>());
    }
    const auto values = json::value_to<std::vector<float>>(item.at("sample"));
    for (std::size_t i = 0; i < values.size(); ++i) row.logits.emplace_back(sample[i], values[i]);
  }
  return golden;
}

std::unique_ptr<BackendAdapter> MakeAdapter(ModelRunner& runner, const std::string& name) {
  const Model& model = runner.model();
  const auto read = ReadLoraAdapter(AdapterFolder() + "/" + name, model.program, model.weight_plan);
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return nullptr;
  auto made = runner.backend().MakeAdapter(*read);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : nullptr;
}

// Logits of the last of `tokens`, in pieces of `chunk`.
std::vector<float> Prefill(ModelRunner& runner, const std::vector<TokenId>& tokens,
                           const BackendAdapter* adapter, std::size_t chunk) {
  runner.Reset(0);
  std::vector<float> row;
  for (std::size_t first = 0; first < tokens.size(); first += chunk) {
    const std::size_t end = std::min(tokens.size(), first + chunk);
    row = runner.Step({{.sequence = 0,
                        .tokens = {tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                   tokens.begin() + static_cast<std::ptrdiff_t>(end)},
                        .adapter = adapter}})[0];
  }
  return row;
}

// The largest difference of the golden rows.
float Difference(ModelRunner& runner, const Golden& golden, std::size_t chunk) {
  const auto adapter = MakeAdapter(runner, golden.name);
  float largest = 0;
  for (const Row& golden_row : golden.rows) {
    const auto row = Prefill(runner, golden.Begin(golden_row.position + 1), adapter.get(), chunk);
    for (const auto& [token, logit] : golden_row.logits) {
      largest = std::max(largest, std::fabs(row.at(static_cast<std::size_t>(token)) - logit));
    }
  }
  return largest;
}

RunnerOptions OptionsFor(Runs backend, const std::string& base) {
  RunnerOptions options;
  options.backend = backend;
  options.folder = CheckpointFolder() + "/" + base;
  options.dtype = DType::kFloat32;
  options.cpu_threads = 2;
  options.max_sequence_length = 100;
  options.sequences = 8;
  return options;
}

class AdapterGoldens : public testing::TestWithParam<Runs> {};
INSTANTIATE_TEST_SUITE_P(Backends, AdapterGoldens, testing::Values(Runs::kReference, Runs::kCpu),
                         BackendName);

TEST_P(AdapterGoldens, AreWhatPeftComputes) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const Golden golden = ReadGolden(name);
    const auto runner = ModelRunner::Open(OptionsFor(GetParam(), golden.base));
    ASSERT_NE(runner, nullptr);
    const float whole = Difference(*runner, golden, kWhole);
    const float chunks = Difference(*runner, golden, 7);
    std::cout << name << ": whole " << whole << ", chunks of 7 " << chunks << '\n';
    EXPECT_LE(whole, kBound);
    EXPECT_LE(chunks, kBound);
  }
}

TEST_P(AdapterGoldens, AreTheSameOnTwoRanks) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const Golden golden = ReadGolden(name);
    OnRanks(OptionsFor(GetParam(), golden.base), 2, [&golden](ModelRunner& runner) {
      EXPECT_LE(Difference(runner, golden, kWhole), kBound);
    });
  }
}

// Three adapters and the plain model: eight rows of decode and a prompt, on several threads.
TEST(AdapterBits, RowsOfABatchHaveTheBitsThatTheyHaveAlone) {
  RunnerOptions options = OptionsFor(Runs::kCpu, ReadGolden(kOfOneBase[0]).base);
  options.cpu_threads = 3;
  options.max_logit_rows = 16;
  const auto runner = ModelRunner::Open(options);
  ASSERT_NE(runner, nullptr);
  std::vector<std::unique_ptr<BackendAdapter>> adapters;
  for (const char* name : kOfOneBase) adapters.push_back(MakeAdapter(*runner, name));
  adapters.push_back(nullptr);
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> texts(8);
  std::vector<std::vector<float>> alone;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i].resize(3 + i * 4);
    for (TokenId& token : texts[i]) token = static_cast<TokenId>(random() % 256);
    alone.push_back(Prefill(*runner, texts[i], adapters[i % 4].get(), kWhole));
  }
  runner->Reset(0);
  std::vector<ModelRunner::Feed> prompts, last;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto sequence = static_cast<int>(i);
    const std::vector<TokenId> before(texts[i].begin(), texts[i].end() - 1);
    prompts.push_back({.sequence = sequence, .tokens = before, .adapter = adapters[i % 4].get()});
    last.push_back(
        {.sequence = sequence, .tokens = {texts[i].back()}, .adapter = adapters[i % 4].get()});
  }
  runner->Step(prompts);
  const auto together = runner->Step(last);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(together[i], alone[i]) << i;
  EXPECT_NE(alone[4], Prefill(*runner, texts[4], nullptr, kWhole)) << "the adapter does nothing";
}

}  // namespace
}  // namespace penstock::shard
