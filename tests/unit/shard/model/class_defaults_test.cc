// A config.json without sizes gives the same model as in transformers. The golden file is made by
// tests/oracle/class_defaults.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "common/status.h"
#include "shard/model/architectures/architectures.h"
#include "shard/model/model_spec.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

json::array Rows() {
  std::ifstream file(testing_support::SourcePath("tests/data/goldens/class_defaults.json"));
  std::ostringstream text;
  text << file.rdbuf();
  return json::parse(text.str()).as_array();
}

// The members of `sizes` that differ from `spec`.
std::string Differences(const json::object& sizes, const ModelSpec& spec) {
  const std::pair<const char*, double> values[] = {
      {"hidden", spec.hidden},
      {"layers", spec.layers},
      {"heads", spec.heads},
      {"kv_heads", spec.kv_heads},
      {"head_dim", spec.head_dim},
      {"intermediate", spec.intermediate},
      {"expert_intermediate", spec.expert_intermediate},
      {"vocabulary", spec.vocabulary},
      {"positions", spec.max_position},
      {"theta", spec.rope.theta},
  };
  std::ostringstream differences;
  for (const auto& [name, value] : values) {
    const json::value* wanted = sizes.if_contains(name);
    if (wanted == nullptr || wanted->to_number<double>() == value) continue;
    differences << name << " " << value << ", not " << *wanted << "; ";
  }
  std::vector<std::uint32_t> windows(spec.layers, 0);
  const json::array& wanted = sizes.at("windows").as_array();
  for (std::size_t i = 0; i < wanted.size(); ++i) windows.at(i) = wanted[i].to_number<unsigned>();
  if (windows != spec.windows) differences << "windows " << testing::PrintToString(spec.windows);
  return differences.str();
}

TEST(ClassDefaults, AreThoseOfTransformers) {
  for (const json::value& row : Rows()) {
    const std::string config = json::serialize(row.at("config"));
    const auto spec = ReadModelSpec(config, "");
    ASSERT_TRUE(spec.ok()) << config << ": " << Message(spec.status());
    EXPECT_EQ(Differences(row.at("sizes").as_object(), *spec), "") << config;
  }
}

TEST(ClassDefaults, EachTypeHasARow) {
  std::set<std::string> types;
  for (const json::value& row : Rows()) {
    types.insert(std::string(row.at("config").at("model_type").as_string()));
  }
  for (const ModelType& type : ModelTypes()) EXPECT_TRUE(types.contains(std::string(type.name)));
}

// A class takes null as it is, and refuses it.
TEST(ClassDefaults, ANullIsNotAbsent) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    const json::object config = {{"model_type", "llama"}, {key, nullptr}};
    const std::string error = Message(ReadModelSpec(json::serialize(config), "").status());
    EXPECT_THAT(error, testing::HasSubstr("`" + std::string(key) + "` must be an integer"));
  }
  const auto spec = ReadModelSpec(R"({"model_type": "qwen2", "num_attention_heads": 64,
                                      "num_key_value_heads": null})",
                                  "");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->kv_heads, 64u);
}

}  // namespace
}  // namespace penstock::shard
