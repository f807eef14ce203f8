// Every model type and variant against HF transformers: the goldens of tests/data/goldens/models
// and the checkpoints that the build makes of them. Prints one line per variant and backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "shard/model/architectures/architectures.h"
#include "tests/unit/shard/backend/model_checkpoints.h"
#include "tests/unit/shard/backend/model_runner.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

constexpr std::size_t kWhole = 128;
constexpr std::size_t kChunk = 7;

json::value ReadJson(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

// What transformers computed for the last row of the text up to `position`.
struct Row {
  std::size_t position = 0;
  std::string how;                                // whole or decode
  std::vector<std::pair<TokenId, float>> logits;  // the best, and a sample
  float logsumexp = 0.0f;
};

float LogSumExp(const std::vector<float>& row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0.0;
  for (const float logit : row) sum += std::exp(logit - largest);
  return static_cast<float>(largest + std::log(sum));
}

// NaN counts as the largest difference.
float Larger(float a, float b) { return a >= b ? a : b; }

float Difference(const std::vector<float>& row, const Row& golden) {
  float largest = std::fabs(LogSumExp(row) - golden.logsumexp);
  for (const auto& [token, logit] : golden.logits) {
    largest = Larger(largest, std::fabs(row.at(static_cast<std::size_t>(token)) - logit));
  }
  return largest;
}

struct Golden {
  std::string name, type;
  float bound = 0.0f;
  std::size_t prompt = 0;     // tokens of the text that are the prompt
  std::vector<TokenId> text;  // the prompt and the greedy tokens
  std::vector<float> logprobs;
  std::vector<std::size_t> close;  // greedy steps whose best two logits are too near
  std::vector<Row> rows;
  // Of the recipe:
  std::string todo, length_rule;
  std::size_t original_length = 0;
  bool world2 = true;

  // Of this way if transformers' result differs from that of the whole computation.
  const Row& At(std::size_t position, const std::string& how) const {
    const Row* found = nullptr;
    for (const Row& row : rows) {
      if (row.position != position) continue;
      if (row.how == how || (row.how == "whole" && found == nullptr)) found = &row;
    }
    return *found;
  }
  std::vector<std::size_t> Positions() const {
    std::vector<std::size_t> positions;
    for (const Row& row : rows) {
      if (row.how == "whole") positions.push_back(row.position);
    }
    return positions;
  }
  std::vector<TokenId> Begin(std::size_t count) const {
    return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count)};
  }
};

Row ReadRow(const json::value& item, const std::vector<TokenId>& sample) {
  Row row;
  row.position = item.at("position").to_number<std::size_t>();
  row.how = json::value_to<std::string>(item.at("how"));
  row.logsumexp = item.at("logsumexp").to_number<float>();
  for (const auto& pair : item.at("top").as_array()) {
    row.logits.emplace_back(pair.at(0).to_number<TokenId>(), pair.at(1).to_number<float>());
  }
  const auto values = json::value_to<std::vector<float>>(item.at("sample"));
  for (std::size_t i = 0; i < values.size(); ++i) row.logits.emplace_back(sample[i], values[i]);
  return row;
}

Golden ReadGolden(const std::string& name) {
  const json::value root = ReadJson(GoldenFolder() + "/" + name + ".json");
  Golden golden;
  golden.name = name;
  golden.type = json::value_to<std::string>(root.at("type"));
  golden.bound = root.at("bound").to_number<float>();
  golden.text = json::value_to<std::vector<TokenId>>(root.at("prompt"));
  golden.prompt = golden.text.size();
  const json::value& greedy = root.at("greedy");
  const auto ids = json::value_to<std::vector<TokenId>>(greedy.at("ids"));
  golden.text.insert(golden.text.end(), ids.begin(), ids.end());
  golden.logprobs = json::value_to<std::vector<float>>(greedy.at("logprobs"));
  golden.close = json::value_to<std::vector<std::size_t>>(greedy.at("close"));
  const auto sample = json::value_to<std::vector<TokenId>>(root.at("sample"));
  for (const auto& item : root.at("rows").as_array()) golden.rows.push_back(ReadRow(item, sample));

  const json::value recipe = ReadJson(CheckpointFolder() + "/" + name + "/test.json");
  golden.todo = json::value_to<std::string>(recipe.at("todo"));
  golden.length_rule = json::value_to<std::string>(recipe.at("length_rule"));
  golden.original_length = recipe.at("original_length").to_number<std::size_t>();
  golden.world2 = recipe.at("world2").as_bool();
  return golden;
}

// ---- the ways ----

// The largest difference of the golden rows, computed in pieces of `chunk`.
float PrefillDifference(ModelRunner& runner, const Golden& golden, std::size_t chunk) {
  float largest = 0.0f;
  for (const std::size_t position : golden.Positions()) {
    runner.Reset(0);
    const auto row = runner.Prefill(0, golden.Begin(position + 1), chunk);
    largest = Larger(largest, Difference(row, golden.At(position, "whole")));
  }
  return largest;
}

// Prefills the prompt and decodes the golden tokens one by one. Checks the greedy ids.
float DecodeDifference(ModelRunner& runner, const Golden& golden) {
  runner.Reset(1);
  std::vector<float> row = runner.Prefill(1, golden.Begin(golden.prompt), kWhole);
  const std::vector<std::size_t> positions = golden.Positions();
  float largest = 0.0f;
  for (std::size_t length = golden.prompt;; ++length) {
    const std::size_t step = length - golden.prompt;
    if (std::find(positions.begin(), positions.end(), length - 1) != positions.end()) {
      largest = Larger(largest, Difference(row, golden.At(length - 1, "decode")));
    }
    if (length == golden.text.size()) break;
    const TokenId expected = golden.text[length];
    const float logit = row.at(static_cast<std::size_t>(expected));
    largest = Larger(largest, std::fabs(logit - LogSumExp(row) - golden.logprobs.at(step)));
    if (std::find(golden.close.begin(), golden.close.end(), step) == golden.close.end()) {
      EXPECT_EQ(Argmax(row), expected) << "greedy token " << step;
    }
    if (golden.length_rule == "whole" && length == golden.original_length) {
      runner.Reset(1);  // The keys in the cache have the frequencies of short texts.
      row = runner.Prefill(1, golden.Begin(length + 1), kWhole);
    } else {
      row = runner.Step({{1, {expected}}}).at(0);
    }
  }
  return largest;
}

float World2Difference(const RunnerOptions& options, const Golden& golden) {
  std::mutex mutex;
  float largest = 0.0f;
  OnRanks(options, 2, [&](ModelRunner& runner) {
    const float whole = PrefillDifference(runner, golden, kWhole);
    const float decode = DecodeDifference(runner, golden);
    const std::lock_guard lock(mutex);
    largest = Larger(largest, Larger(whole, decode));
  });
  return largest;
}

// ---- the table ----

std::string Cell(std::optional<float> difference) {
  if (!difference.has_value()) return "       -";
  char text[32];
  std::snprintf(text, sizeof text, "%8.1e", static_cast<double>(*difference));
  return text;
}

std::string Padded(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

void PrintLine(const Golden& golden, const std::string& backend,
               const std::vector<std::optional<float>>& cells) {
  std::cout << "model-golden " << Padded(golden.type, 12) << " "
            << Padded(golden.name.substr(golden.type.size() + 1), 22) << " " << Padded(backend, 9);
  const char* const kWays[] = {"whole", "chunks", "decode", "world2", "bound"};
  for (std::size_t i = 0; i < cells.size(); ++i) std::cout << "  " << kWays[i] << Cell(cells[i]);
  std::cout << std::endl;
}

class ModelGolden : public testing::TestWithParam<std::tuple<std::string, Runs>> {};

TEST_P(ModelGolden, LogitsAndGreedyIdsAreThoseOfTransformers) {
  const auto& [name, backend] = GetParam();
  const Golden golden = ReadGolden(name);
  RunnerOptions options;
  options.folder = CheckpointFolder() + "/" + name;
  options.dtype = DType::kFloat32;
  options.backend = backend;
  options.max_sequence_length = 128;
  options.window_tables = true;
  const std::string type =
      json::value_to<std::string>(ReadJson(options.folder + "/config.json").at("model_type"));
  if (FindArchitecture(type) == nullptr)
    GTEST_SKIP() << "model type " << type << ": not served yet";
  if (!golden.todo.empty()) GTEST_SKIP() << name << ": not served yet: " << golden.todo;

  auto runner = ModelRunner::Open(options);
  ASSERT_NE(runner, nullptr);
  std::vector<std::optional<float>> cells = {PrefillDifference(*runner, golden, kWhole),
                                             PrefillDifference(*runner, golden, kChunk),
                                             DecodeDifference(*runner, golden), std::nullopt};
  if (golden.world2) cells[3] = World2Difference(options, golden);
  for (const std::optional<float>& cell : cells) {
    EXPECT_LE(cell.value_or(0.0f), golden.bound);
  }
  cells.push_back(golden.bound);
  PrintLine(golden, testing::PrintToString(backend), cells);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGolden,
                         testing::Combine(testing::ValuesIn(GoldenNames()),
                                          testing::Values(Runs::kReference, Runs::kCpu)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           const bool cpu = std::get<1>(info.param) == Runs::kCpu;
                           return name + (cpu ? "_cpu" : "_reference");
                         });

}  // namespace
}  // namespace penstock::shard
