// Bodies of requests for vectors and scores. null counts as absent, and unknown keys are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/body.h"
#include "router/api/openai/request.h"

namespace penstock::router::vectors {

// A string or a list of strings. Cohere's and Jina's documents may be objects with `text`.
struct Texts {
  std::vector<std::string> list;
};

bool ReadValue(json::Reader& reader, Texts& out, std::string_view expected);

struct Common {
  std::string model;
  std::optional<std::int32_t> truncate_prompt_tokens;  // -1: to the limit of the model
  bool add_special_tokens = true;
};

struct EmbeddingsRequest : Common {
  openai::Prompts input;
  std::string encoding_format = "float";
  std::optional<std::uint32_t> dimensions;
  std::optional<bool> normalize;
  std::optional<std::string> prompt_name;
};

// text-embeddings-inference.
struct EmbedRequest {
  openai::Prompts inputs;
  bool truncate = false;
  bool normalize = true;
  std::optional<std::uint32_t> dimensions;
  std::optional<std::string> prompt_name;
};

struct RerankRequest : Common {
  std::string query;
  Texts documents;
  std::optional<std::uint32_t> top_n;
  std::optional<bool> return_documents;
};

struct ScoreRequest : Common {
  Texts text_1;
  Texts text_2;
};

Parsed<EmbeddingsRequest> ParseEmbeddings(std::string_view body);
Parsed<EmbedRequest> ParseEmbed(std::string_view body);
Parsed<RerankRequest> ParseRerank(std::string_view body);
Parsed<ScoreRequest> ParseScore(std::string_view body);

void AppendRequestSchemas(std::string& out);

}  // namespace penstock::router::vectors
