#include "router/main/vector_files.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/status.h"

namespace penstock::router {
namespace {

absl::StatusOr<boost::json::object> ParseObject(std::string_view text) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(text, error);
  if (error || !value.is_object()) return absl::InvalidArgumentError("must be a JSON object");
  return std::move(value.as_object());
}

absl::Status AddSizesOf(const boost::json::object& config, VectorFacts& vectors) {
  const boost::json::value* sizes = config.if_contains("matryoshka_dimensions");
  if (sizes != nullptr && sizes->is_array()) {
    for (const boost::json::value& size : sizes->get_array()) {
      if (!size.is_int64() || size.get_int64() < 1 || size.get_int64() > vectors.outputs) {
        return absl::InvalidArgumentError("matryoshka_dimensions must be from 1 to " +
                                          std::to_string(vectors.outputs) + ", not " +
                                          boost::json::serialize(size));
      }
      vectors.sizes.push_back(static_cast<std::uint32_t>(size.get_int64()));
    }
  }
  const boost::json::value* any = config.if_contains("is_matryoshka");
  if (any != nullptr && any->is_bool() && any->get_bool()) vectors.any_size = true;
  return absl::OkStatus();
}

absl::Status AddPromptsOf(const boost::json::object& config, VectorFacts& vectors) {
  const boost::json::value* prompts = config.if_contains("prompts");
  if (prompts != nullptr && prompts->is_object()) {
    for (const auto& [name, prompt] : prompts->get_object()) {
      if (prompt.is_string()) vectors.prompts[name] = std::string(prompt.get_string());
    }
  }
  const boost::json::value* name = config.if_contains("default_prompt_name");
  if (name == nullptr || !name->is_string()) return absl::OkStatus();
  vectors.default_prompt = std::string(name->get_string());
  if (vectors.prompts.contains(vectors.default_prompt)) return absl::OkStatus();
  return absl::InvalidArgumentError("default_prompt_name must be one of prompts, not " +
                                    vectors.default_prompt);
}

using Add = absl::Status (*)(std::string_view text, VectorFacts& vectors);

absl::Status AddFile(const std::string& path, Add add, VectorFacts& vectors) {
  std::ifstream file(path);
  if (!file.is_open()) return absl::OkStatus();
  std::stringstream text;
  text << file.rdbuf();
  absl::Status status = add(text.str(), vectors);
  return status.ok() ? status : WithContext(status, path);
}

}  // namespace

absl::Status AddSizes(std::string_view config_json, VectorFacts& vectors) {
  const auto config = ParseObject(config_json);
  return config.ok() ? AddSizesOf(*config, vectors) : config.status();
}

absl::Status AddPrompts(std::string_view sentence_json, VectorFacts& vectors) {
  const auto config = ParseObject(sentence_json);
  if (!config.ok()) return config.status();
  const absl::Status sizes = AddSizesOf(*config, vectors);
  return sizes.ok() ? AddPromptsOf(*config, vectors) : sizes;
}

absl::Status AddVectorFiles(const std::string& folder, VectorFacts& vectors) {
  const absl::Status sizes = AddFile(folder + "/config.json", AddSizes, vectors);
  if (!sizes.ok()) return sizes;
  return AddFile(folder + "/config_sentence_transformers.json", AddPrompts, vectors);
}

}  // namespace penstock::router
