#include "router/api/ollama/dialect.h"

#include <string>

#include "router/api/docs/shapes.h"
#include "router/api/ollama/request.h"
#include "router/api/ollama/translate.h"
#include "router/api/openai/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::ollama {
namespace {

using enum ApiErrorKind;

class Format final : public ErrorFormat {
 public:
  // As OpenAI's, save for a full queue.
  int Status(ApiErrorKind kind) const override {
    return kind == kOverloaded ? 503 : openai::Errors().Status(kind);
  }
  std::string Body(const ApiError& error) const override {
    return json::ObjectText("error", error.message);
  }
  std::string_view Schema() const override { return "OllamaErrorResponse"; }

  ApiError FromEngine(const GenerationError& error, const ApiOptions& options) const override {
    return AsAsked(openai::ErrorsAbout({"messages", "max_tokens", "response_format"})
                       .FromEngine(error, options));
  }
};

constexpr docs::Shape kShapes[] = {
    {"OllamaErrorResponse", "error:string"},
    {"OllamaCalledFunction", "index:integer name:string arguments:object"},
    {"OllamaCall", "id:string function:OllamaCalledFunction"},
    {"OllamaMessage", "role:=assistant content:string thinking?:string tool_calls?:OllamaCall[]"},
    {"OllamaChat",
     "model:string created_at:string message:OllamaMessage done:boolean "
     "done_reason?:=stop|length|load total_duration?:integer load_duration?:integer "
     "prompt_eval_count?:integer prompt_eval_duration?:integer eval_count?:integer "
     "eval_duration?:integer"},
    {"OllamaGeneration",
     "model:string created_at:string response:string thinking?:string done:boolean "
     "done_reason?:=stop|length|load total_duration?:integer load_duration?:integer "
     "prompt_eval_count?:integer prompt_eval_duration?:integer eval_count?:integer "
     "eval_duration?:integer"},
    {"OllamaDetails",
     "parent_model:string format:string family:string parameter_size:string "
     "quantization_level:string"},
    {"OllamaModel",
     "name:string model:string modified_at?:string size:integer digest:string "
     "details:OllamaDetails expires_at?:string size_vram?:integer context_length?:integer"},
    {"OllamaModels", "models:OllamaModel[]"},
    {"OllamaShown",
     "modelfile:string parameters:string template:string details:OllamaDetails model_info:object "
     "capabilities:string[] modified_at:string"},
    {"OllamaVersion", "version:string"},
};

std::vector<Route> Routes() {
  return {
      Post("/api/chat", Chat,
           {.body = "OllamaChatRequest",
            .contents = {{{kLines, "OllamaChat"}, {kJson, "OllamaChat"}}},
            .failure = "OllamaErrorResponse"}),
      Post("/api/generate", Generate,
           {.body = "OllamaGenerateRequest",
            .contents = {{{kLines, "OllamaGeneration"}, {kJson, "OllamaGeneration"}}},
            .failure = "OllamaErrorResponse"}),
      Post("/api/show", Show,
           {.body = "OllamaShowRequest", .contents = {{{kJson, "OllamaShown"}}}}),
      Public(Get("/api/tags", Tags, {.contents = {{{kJson, "OllamaModels"}}}})),
      Public(Get("/api/ps", Running, {.contents = {{{kJson, "OllamaModels"}}}})),
      Public(Get("/api/version", Version, {.contents = {{{kJson, "OllamaVersion"}}}})),
  };
}

class OllamaDialect final : public Dialect {
 public:
  OllamaDialect() : Dialect(Routes()) {}
  const ErrorFormat& Errors() const override { return ollama::Errors(); }
  bool Owns(std::string_view path) const override { return path.starts_with("/api/"); }
  void AppendSchemas(std::string& out) const override {
    AppendRequestSchemas(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect() { return std::make_unique<OllamaDialect>(); }

const ErrorFormat& Errors() {
  static const Format format;
  return format;
}

}  // namespace penstock::router::ollama
