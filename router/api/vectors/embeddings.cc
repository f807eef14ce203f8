// /v1/embeddings and /embed.
#include <absl/strings/escaping.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/openai/dialect.h"
#include "router/api/vectors/dialect.h"
#include "router/api/vectors/run_embed.h"
#include "router/json/writer.h"

namespace penstock::router::vectors {
namespace {

// What an embedding of an answer is.
struct Form {
  std::size_t size = 0;
  bool unit = false;
  bool base64 = false;
};

std::optional<ApiError> CheckEmbedder(const ModelFacts& facts) {
  if (!facts.vectors || !facts.vectors->classifies) return std::nullopt;
  return Unsupported("model", "is a classifier and gives no embeddings: /classify has its classes");
}

std::optional<ApiError> CheckDimensions(const ModelFacts& facts,
                                        std::optional<std::uint32_t> dimensions) {
  if (!dimensions || !facts.vectors || *dimensions == facts.vectors->outputs) return std::nullopt;
  const VectorFacts& vectors = *facts.vectors;
  const std::string given = std::to_string(*dimensions);
  const std::string whole = std::to_string(vectors.outputs);
  if (!vectors.sizes.empty()) {
    if (std::ranges::find(vectors.sizes, *dimensions) != vectors.sizes.end()) return std::nullopt;
    return MustBe("dimensions", whole + " or one of " + absl::StrJoin(vectors.sizes, ", "), given);
  }
  if (!vectors.any_size) {
    return MustBe("dimensions", whole + ", since this model was not trained for shorter embeddings",
                  given);
  }
  if (*dimensions > 0 && *dimensions < vectors.outputs) return std::nullopt;
  return MustBe("dimensions", "from 1 to " + whole + ", the size of the embeddings", given);
}

// Puts the prompt before each text. Token ids are taken as they are, unless a prompt was named.
std::optional<ApiError> AddPrompt(const ModelFacts& facts, const std::optional<std::string>& asked,
                                  std::vector<EmbedInput>& inputs, std::string_view field) {
  if (!facts.vectors) return std::nullopt;
  const VectorFacts& vectors = *facts.vectors;
  const std::string& name = asked ? *asked : vectors.default_prompt;
  if (!asked && name.empty()) return std::nullopt;
  const auto prompt = vectors.prompts.find(name);
  if (prompt == vectors.prompts.end()) {
    const auto append = [](std::string* out, const auto& each) { *out += each.first; };
    const std::string names = absl::StrJoin(vectors.prompts, ", ", append);
    return MustBe("prompt_name",
                  names.empty() ? "absent, since this model has no prompts" : "one of " + names,
                  name);
  }
  for (EmbedInput& input : inputs) {
    if (auto* text = std::get_if<std::string>(&input.text)) {
      text->insert(0, prompt->second);
    } else if (asked) {
      return MustBe(field, "text with `prompt_name`", "token ids");
    }
  }
  return std::nullopt;
}

// A cut embedding is made a unit vector again.
Form FormOf(const ModelFacts& facts, std::optional<std::uint32_t> dimensions,
            std::optional<bool> normalize) {
  if (!facts.vectors) return {};
  const VectorFacts& vectors = *facts.vectors;
  const bool cut = dimensions && *dimensions < vectors.outputs;
  return {dimensions.value_or(vectors.outputs), normalize.value_or(vectors.normalized || cut)};
}

// Little-endian float32, as OpenAI's clients read it.
std::string Base64(const std::vector<float>& vector) {
  static_assert(sizeof(float) == 4);
  return absl::Base64Escape({reinterpret_cast<const char*>(vector.data()), vector.size() * 4});
}

void AppendNumbers(std::string& out, const std::vector<float>& vector) {
  json::AppendArray(out, vector,
                    [](std::string& to, float number) { json::AppendFloat(to, number); });
}

void AppendEmbedding(std::string& out, std::size_t index, const std::vector<float>& vector,
                     bool base64) {
  json::AppendComma(out);
  out += '{';
  json::AppendMembers(out, "object", "embedding", "index", index);
  if (base64) {
    json::AppendMembers(out, "embedding", Base64(vector));
  } else {
    std::string numbers;
    AppendNumbers(numbers, vector);
    json::AppendMembers(out, "embedding", json::Raw{numbers});
  }
  out += '}';
}

std::string EmbeddingsBody(const AnswerHead& head, const Form& form, const Embedded& embedded) {
  std::string data;
  for (std::size_t i = 0; i < embedded.vectors.size(); ++i) {
    AppendEmbedding(data, i, Shortened(embedded.vectors[i], form.size, form.unit), form.base64);
  }
  std::string body = "{";
  json::AppendMembers(body, "id", head.id, "object", "list", "created", head.created, "model",
                      head.model);
  body += ",\"data\":[" + data + "]";
  AppendUsage(body, embedded);
  return body + "}";
}

std::string EmbedBody(const Form& form, const Embedded& embedded) {
  std::string body = "[";
  for (const std::vector<float>& vector : embedded.vectors) {
    json::AppendComma(body);
    AppendNumbers(body, Shortened(vector, form.size, form.unit));
  }
  return body + "]";
}

}  // namespace

void Embeddings(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<EmbeddingsRequest> parsed = ParseEmbeddings(http.body);
  if (!Accept(context, "/v1/embeddings", "openai", openai::Errors(), parsed, *exchange)) return;
  EmbeddingsRequest& request = parsed.request;
  const ModelFacts facts = context.engine.Facts();
  auto error = CheckEmbedder(facts);
  if (!error) error = CheckDimensions(facts, request.dimensions);
  if (!error) error = CheckTruncation(request);
  const bool base64 = request.encoding_format == "base64";
  if (!error && !base64 && request.encoding_format != "float") {
    error = MustBe("encoding_format", "float or base64", request.encoding_format);
  }
  std::vector<EmbedInput> inputs = InputsOf(std::move(request.input));
  if (!error) error = AddPrompt(facts, request.prompt_name, inputs, "input");
  if (error) return Refuse(context, *exchange, *std::move(error));
  Form form = FormOf(facts, request.dimensions, request.normalize);
  form.base64 = base64;
  const AnswerHead head = MakeHead(context, "embd", http.head);
  EmbedRun run{"input", request.model, JobOf(request, std::move(inputs))};
  RunEmbed(context, http.head, std::move(run), std::move(exchange),
           [head, form](const Embedded& embedded) { return EmbeddingsBody(head, form, embedded); });
}

void Embed(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<EmbedRequest> parsed = ParseEmbed(http.body);
  if (!Accept(context, "/embed", "openai", openai::Errors(), parsed, *exchange)) return;
  EmbedRequest& request = parsed.request;
  const ModelFacts facts = context.engine.Facts();
  auto error = CheckEmbedder(facts);
  if (!error) error = CheckDimensions(facts, request.dimensions);
  std::vector<EmbedInput> inputs = InputsOf(std::move(request.inputs));
  if (!error) error = AddPrompt(facts, request.prompt_name, inputs, "inputs");
  if (error) return Refuse(context, *exchange, *std::move(error));
  const Form form = FormOf(facts, request.dimensions, request.normalize);
  EmbedRun run{"inputs", "", {std::move(inputs)}};
  if (request.truncate) run.job.truncate = facts.max_input_tokens;
  RunEmbed(context, http.head, std::move(run), std::move(exchange),
           [form](const Embedded& embedded) { return EmbedBody(form, embedded); });
}

}  // namespace penstock::router::vectors
