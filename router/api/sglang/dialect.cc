#include "router/api/sglang/dialect.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/docs/shapes.h"
#include "router/api/openai/dialect.h"
#include "router/api/sglang/request.h"
#include "router/json/writer.h"

namespace penstock::router::sglang {
namespace {

class PlainFormat final : public ErrorFormat {
 public:
  // As OpenAI's, save for a full queue.
  int Status(ApiErrorKind kind) const override {
    return kind == ApiErrorKind::kOverloaded ? 503 : openai::Errors().Status(kind);
  }
  std::string Body(const ApiError& error) const override {
    return json::ObjectText("error", json::Object("message", error.message));
  }
  std::string_view Schema() const override { return "SglangErrorResponse"; }
};

constexpr docs::Shape kShapes[] = {
    {"SglangError", "message:string"},
    {"SglangErrorResponse", "error:SglangError"},
    {"SglangFinish",
     "type:=stop|length|abort matched?:integer,string length?:integer message?:string"},
    {"SglangPart", ":number,integer,string?"},
    {"SglangEntry", ":SglangPart[]"},
    {"SglangMeta",
     "id:string finish_reason:SglangFinish? prompt_tokens:integer completion_tokens:integer "
     "cached_tokens:integer weight_version:string input_token_logprobs?:SglangEntry[] "
     "output_token_logprobs?:SglangEntry[] input_top_logprobs?:SglangEntry[]?[] "
     "output_top_logprobs?:SglangEntry[]?[] "
     "e2e_latency?:number"},
    {"SglangResult", "text:string output_ids:integer[] meta_info:SglangMeta index?:integer"},
    {"SglangResults", ":SglangResult[]"},
    {"SglangModelInfo",
     "model_path:string served_model_name:string tokenizer_path:string is_generation:boolean "
     "preferred_sampling_params:string? weight_version:string has_image_understanding:boolean "
     "has_audio_understanding:boolean"},
    {"SglangState", "running:integer waiting:integer"},
    {"SglangServerInfo",
     "model_path:string served_model_name:string tokenizer_path:string version:string "
     "status:string context_length:integer max_req_input_len:integer "
     "max_total_num_tokens:integer max_running_requests:integer internal_states:SglangState[]"},
    {"SglangConcatenated", "success:boolean"},
};

std::vector<Route> Routes() {
  const RouteDoc model = {.contents = {{{kJson, "SglangModelInfo"}}}};
  const RouteDoc server = {.contents = {{{kJson, "SglangServerInfo"}}}};
  return {
      Public(Get("/get_model_info", ModelInfo, model)),
      Public(Get("/model_info", ModelInfo, model)),
      Public(Get("/get_server_info", ServerInfo, server)),
      Public(Get("/server_info", ServerInfo, server)),
      Probe("/health_generate", HealthGenerate, {.unavailable = "ErrorResponse"}),
      Post("/flush_cache", FlushCache, {.contents = {{{"text/plain", "string"}}}}),
      Post("/concate_and_append_request", Concatenate,
           {.body = "SglangConcatenateRequest", .contents = {{{kJson, "SglangConcatenated"}}}}),
  };
}

class SglangDialect final : public Dialect {
 public:
  SglangDialect() : Dialect(Routes()) {}
  const ErrorFormat& Errors() const override { return sglang::Errors(); }
  bool Owns(std::string_view path) const override {
    return std::ranges::any_of(routes(),
                               [path](const Route& route) { return route.pattern == path; });
  }
  void AppendSchemas(std::string& out) const override {
    AppendRequestSchemas(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect() { return std::make_unique<SglangDialect>(); }

const ErrorFormat& Errors() {
  static const PlainFormat format;
  return format;
}

}  // namespace penstock::router::sglang
