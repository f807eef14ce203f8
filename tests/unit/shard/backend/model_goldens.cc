#include "tests/unit/shard/backend/model_goldens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

#include "shard/model/architectures/architectures.h"
#include "tests/unit/shard/backend/model_checkpoints.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

json::value ReadJson(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

using Row = ModelGolden::Row;

float LogSumExp(const std::vector<float>& row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0.0;
  for (const float logit : row) sum += std::exp(logit - largest);
  return static_cast<float>(largest + std::log(sum));
}

float Difference(const std::vector<float>& row, const Row& golden) {
  float largest = std::fabs(LogSumExp(row) - golden.logsumexp);
  for (const auto& [token, logit] : golden.logits) {
    largest = Larger(largest, std::fabs(row.at(static_cast<std::size_t>(token)) - logit));
  }
  return largest;
}

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

std::string Cell(std::optional<float> difference) {
  if (!difference.has_value()) return "       -";
  char text[32];
  std::snprintf(text, sizeof text, "%8.1e", static_cast<double>(*difference));
  return text;
}

std::string Padded(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

}  // namespace

const Row& ModelGolden::At(std::size_t position, const std::string& how) const {
  const Row* found = nullptr;
  for (const Row& row : rows) {
    if (row.position != position) continue;
    if (row.how == how || (row.how == "whole" && found == nullptr)) found = &row;
  }
  return *found;
}

std::vector<std::size_t> ModelGolden::Positions() const {
  std::vector<std::size_t> positions;
  for (const Row& row : rows) {
    if (row.how == "whole") positions.push_back(row.position);
  }
  return positions;
}

ModelGolden ReadModelGolden(const std::string& name) {
  const json::value root = ReadJson(GoldenFolder() + "/" + name + ".json");
  ModelGolden golden;
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

float PrefillDifference(ModelRunner& runner, const ModelGolden& golden, std::size_t chunk) {
  float largest = 0.0f;
  for (const std::size_t position : golden.Positions()) {
    runner.Reset(0);
    const auto row = runner.Prefill(0, golden.Begin(position + 1), chunk);
    largest = Larger(largest, Difference(row, golden.At(position, "whole")));
  }
  return largest;
}

float DecodeDifference(ModelRunner& runner, const ModelGolden& golden) {
  runner.Reset(1);
  std::vector<float> row = runner.Prefill(1, golden.Begin(golden.prompt), kWholePrompt);
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
      row = runner.Prefill(1, golden.Begin(length + 1), kWholePrompt);
    } else {
      row = runner.Step({{1, {expected}}}).at(0);
    }
  }
  return largest;
}

RunnerOptions OptionsOf(const ModelGolden& golden) {
  RunnerOptions options;
  options.folder = CheckpointFolder() + "/" + golden.name;
  options.dtype = DType::kFloat32;
  options.max_sequence_length = 128;
  options.window_tables = true;
  return options;
}

std::string WhyNotServed(const ModelGolden& golden) {
  const json::value config = ReadJson(OptionsOf(golden).folder + "/config.json");
  const auto type = json::value_to<std::string>(config.at("model_type"));
  if (FindArchitecture(type) == nullptr) return "model type " + type + ": not served yet";
  return golden.todo.empty() ? "" : golden.name + ": not served yet: " + golden.todo;
}

void PrintDifferences(const ModelGolden& golden, const std::string& backend,
                      std::vector<std::optional<float>> differences) {
  differences.push_back(golden.bound);
  std::cout << "model-golden " << Padded(golden.type, 12) << " "
            << Padded(golden.name.substr(golden.type.size() + 1), 22) << " " << Padded(backend, 9);
  const char* const kWays[] = {"whole", "chunks", "decode", "world2", "bound"};
  for (std::size_t i = 0; i < differences.size(); ++i)
    std::cout << "  " << kWays[i] << Cell(differences[i]);
  std::cout << std::endl;
}

}  // namespace penstock::shard
