#include "tools/simshard/model_facts.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "common/bad_option.h"
#include "common/status.h"

namespace penstock::simshard {
namespace {

namespace json = boost::json;

// nullopt if the file is absent.
absl::StatusOr<std::optional<json::object>> ReadObject(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::optional<json::object>();
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) {
    return absl::InvalidArgumentError(path.string() + " is not a JSON object" +
                                      (error ? ": " + error.message() : ""));
  }
  return std::optional<json::object>(std::move(value.get_object()));
}

std::optional<std::int64_t> FindInt(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->get_int64();
}

// "eos_token_id": 2, or [1, 2].
std::vector<TokenId> EosOf(const json::object& object) {
  std::vector<TokenId> ids;
  const json::value* value = object.if_contains("eos_token_id");
  if (value == nullptr) return ids;
  if (value->is_int64()) ids.push_back(static_cast<TokenId>(value->get_int64()));
  if (!value->is_array()) return ids;
  for (const json::value& id : value->get_array()) {
    if (id.is_int64()) ids.push_back(static_cast<TokenId>(id.get_int64()));
  }
  return ids;
}

// The ids of tokenizer.json: those of the model's vocabulary, and the added ones.
struct TokenizerIds {
  std::vector<TokenId> all;
  std::vector<TokenId> special;
  json::object added;  // text -> id
};

TokenizerIds IdsOf(const json::object& tokenizer) {
  TokenizerIds ids;
  const json::value* model = tokenizer.if_contains("model");
  if (model != nullptr && model->is_object()) {
    const json::value* vocabulary = model->get_object().if_contains("vocab");
    if (vocabulary != nullptr && vocabulary->is_object()) {
      for (const auto& entry : vocabulary->get_object()) {
        if (entry.value().is_int64())
          ids.all.push_back(static_cast<TokenId>(entry.value().get_int64()));
      }
    }
  }
  const json::value* added = tokenizer.if_contains("added_tokens");
  if (added == nullptr || !added->is_array()) return ids;
  for (const json::value& token : added->get_array()) {
    if (!token.is_object()) continue;
    const std::optional<std::int64_t> id = FindInt(token.get_object(), "id");
    if (!id.has_value()) continue;
    ids.all.push_back(static_cast<TokenId>(*id));
    const json::value* special = token.get_object().if_contains("special");
    if (special != nullptr && special->is_bool() && special->get_bool()) {
      ids.special.push_back(static_cast<TokenId>(*id));
    }
    const json::value* content = token.get_object().if_contains("content");
    if (content != nullptr && content->is_string()) ids.added[content->get_string()] = *id;
  }
  return ids;
}

// tokenizer_config.json names the end token by its text, as a string or in an object.
std::vector<TokenId> EosByText(const json::object& config, const TokenizerIds& ids) {
  const json::value* text = config.if_contains("eos_token");
  if (text != nullptr && text->is_object()) text = text->get_object().if_contains("content");
  if (text == nullptr || !text->is_string()) return {};
  const std::optional<std::int64_t> id =
      FindInt(ids.added, std::string(text->get_string()).c_str());
  if (!id.has_value()) return {};
  return {static_cast<TokenId>(*id)};
}

void FillTokens(ModelFacts& facts, const TokenizerIds& ids) {
  for (TokenId id : ids.all) {
    facts.vocabulary = std::max(facts.vocabulary, static_cast<std::uint32_t>(id) + 1);
  }
  facts.special.assign(facts.vocabulary, false);
  for (TokenId id : ids.special) facts.special[static_cast<std::size_t>(id)] = true;
  std::erase_if(facts.eos_token_ids, [&](TokenId id) {
    return id < 0 || static_cast<std::uint32_t>(id) >= facts.vocabulary;
  });
  for (TokenId id : facts.eos_token_ids) facts.special[static_cast<std::size_t>(id)] = true;
  for (TokenId id : ids.all) {
    if (!facts.special[static_cast<std::size_t>(id)]) facts.regular.push_back(id);
  }
  std::sort(facts.regular.begin(), facts.regular.end());
  facts.regular.erase(std::unique(facts.regular.begin(), facts.regular.end()), facts.regular.end());
}

}  // namespace

ModelFacts PlainFacts(std::uint32_t vocabulary) {
  ModelFacts facts;
  facts.vocabulary = std::max(vocabulary, 4u);
  facts.eos_token_ids = {2};
  facts.special.assign(facts.vocabulary, false);
  std::fill_n(facts.special.begin(), 3, true);
  for (TokenId id = 3; static_cast<std::uint32_t>(id) < facts.vocabulary; ++id) {
    facts.regular.push_back(id);
  }
  return facts;
}

absl::StatusOr<ModelFacts> ReadModelFacts(const std::string& folder) {
  const std::filesystem::path path(folder);
  PENSTOCK_ASSIGN_OR_RETURN(const auto tokenizer, ReadObject(path / "tokenizer.json"));
  if (!tokenizer.has_value()) {
    return BadOption("model-id", folder, "a folder with a tokenizer.json");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto config, ReadObject(path / "config.json"));
  PENSTOCK_ASSIGN_OR_RETURN(const auto generation, ReadObject(path / "generation_config.json"));
  PENSTOCK_ASSIGN_OR_RETURN(const auto tokenizing, ReadObject(path / "tokenizer_config.json"));
  ModelFacts facts;
  facts.model_id = folder;
  const TokenizerIds ids = IdsOf(*tokenizer);
  if (config.has_value()) {
    facts.vocabulary = static_cast<std::uint32_t>(FindInt(*config, "vocab_size").value_or(0));
    facts.max_position =
        static_cast<std::uint32_t>(FindInt(*config, "max_position_embeddings").value_or(0));
    facts.eos_token_ids = EosOf(*config);
    const json::value* type = config->if_contains("model_type");
    if (type != nullptr && type->is_string()) facts.model_type = std::string(type->get_string());
  }
  if (generation.has_value() && !EosOf(*generation).empty()) {
    facts.eos_token_ids = EosOf(*generation);
  }
  if (facts.eos_token_ids.empty() && tokenizing.has_value()) {
    facts.eos_token_ids = EosByText(*tokenizing, ids);
  }
  FillTokens(facts, ids);
  if (facts.eos_token_ids.empty()) {
    return BadValue("eos_token_id", "none",
                    "named by config.json or tokenizer_config.json of " + folder);
  }
  if (facts.regular.empty()) return BadOption("model-id", folder, "a tokenizer with tokens");
  return facts;
}

}  // namespace penstock::simshard
