// What the files of an embedding model say about requests: the sizes of its embeddings and its
// prompts.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

#include "router/engine.h"

namespace penstock::router {

// Adds the sizes that `config_json` names (`is_matryoshka`, `matryoshka_dimensions`). A text that
// is no JSON object is an error.
absl::Status AddSizes(std::string_view config_json, VectorFacts& vectors);

// Adds `prompts` and `default_prompt_name`, and sizes as above.
absl::Status AddPrompts(std::string_view sentence_json, VectorFacts& vectors);

// Reads config.json and config_sentence_transformers.json of the folder. Either may be absent.
absl::Status AddVectorFiles(const std::string& folder, VectorFacts& vectors);

}  // namespace penstock::router
