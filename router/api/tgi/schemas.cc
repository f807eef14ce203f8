
#include "router/api/docs/shapes.h"
#include "router/api/tgi/chat/serve.h"
#include "router/api/tgi/dialect.h"

namespace penstock::router::tgi {
namespace {

// Names and shapes are those of TGI's document where it has them. A client that is generated from
// ours must find every key that the writers of answers write, and no other
// (tests/integration/test_openapi.py).
constexpr docs::Shape kShapes[] = {
    {"ErrorResponse", "error:string error_type:string"},
    {"FinishReason", ":=length|eos_token|stop_sequence"},
    {"Token", "id:integer text:string logprob:number? special:boolean"},
    {"PrefillToken", "id:integer text:string logprob:number?"},
    {"BestOfSequence",
     "generated_text:string finish_reason:FinishReason generated_tokens:integer seed:integer? "
     "prefill:PrefillToken[] tokens:Token[] top_tokens?:Token[][]"},
    {"Details",
     "finish_reason:FinishReason generated_tokens:integer seed:integer? prefill:PrefillToken[] "
     "tokens:Token[] best_of_sequences?:BestOfSequence[] top_tokens?:Token[][]"},
    {"GenerateResponse", "generated_text:string details?:Details"},
    {"CompatGenerateResponse", ":GenerateResponse[]"},
    {"StreamDetails",
     "finish_reason:FinishReason generated_tokens:integer seed:integer? input_length:integer"},
    {"StreamResponse",
     "index:integer token:Token top_tokens?:Token[] generated_text:string? "
     "details:StreamDetails?"},
    {"SimpleToken", "id:integer text:string start:integer stop:integer"},
    {"TokenizeResponse", ":SimpleToken[]"},
    {"ChatTokenizeResponse", "tokenize_response:TokenizeResponse templated_text:string"},
    {"VertexResponse", "predictions:string[]"},
    {"Info",
     "model_id:string model_sha:string? model_pipeline_tag:string? "
     "max_concurrent_requests:integer max_best_of:integer max_stop_sequences:integer "
     "max_input_tokens:integer max_total_tokens:integer validation_workers:integer "
     "max_client_batch_size:integer router:string version:string sha:string? docker_label:string? "
     "model_dtype?:string? model_device_type?:string? model_backend?:string? quantize?:string? "
     "max_batch_total_tokens?:integer task?:string has_chat_template?:boolean"},
    {"ModelInfo", "id:string object:string created:integer owned_by:string max_model_len?:integer"},
    {"ModelsInfo", "object:string data:ModelInfo[]"},
    // TGI's chats and completions
    {"Usage", "prompt_tokens:integer completion_tokens:integer total_tokens:integer"},
    {"ChatCompletionTopLogprob", "token:string logprob:number"},
    {"ChatCompletionLogprob",
     "token:string logprob:number? top_logprobs:ChatCompletionTopLogprob[]"},
    {"ChatCompletionLogprobs", "content:ChatCompletionLogprob[]"},
    {"CalledFunction", "description:string? name:string arguments:string"},
    {"ToolCall", "id:string type:string function:CalledFunction"},
    {"OutputMessage", "role:string content?:string tool_calls?:ToolCall[]"},
    {"ChatCompletionComplete",
     "index:integer message:OutputMessage logprobs:ChatCompletionLogprobs? finish_reason:string"},
    {"ChatCompletion",
     "object:string id:string created:integer model:string system_fingerprint:string "
     "choices:ChatCompletionComplete[] usage:Usage"},
    {"Function", "name:string? arguments:string"},
    {"DeltaToolCall", "index:integer id:string type:string function:Function"},
    {"ChatCompletionDelta", "role:string content?:string tool_calls?:DeltaToolCall[]"},
    {"ChatCompletionChoice",
     "index:integer delta:ChatCompletionDelta logprobs:ChatCompletionLogprobs? "
     "finish_reason:string?"},
    {"ChatCompletionChunk",
     "object:string id:string created:integer model:string system_fingerprint:string "
     "choices:ChatCompletionChoice[] usage:Usage?"},
    {"CompletionComplete", "index:integer text:string logprobs:number[]? finish_reason:string"},
    {"CompletionFinal",
     "object:string id:string created:integer model:string system_fingerprint:string "
     "choices:CompletionComplete[] usage:Usage"},
    {"Chunk",
     "object:string id:string created:integer model:string system_fingerprint:string "
     "choices:CompletionComplete[] usage?:Usage"},
    {"ChatStreamError", "message:string http_status_code:integer"},
    {"ChatStreamFailure", "error:ChatStreamError"},
};

}  // namespace

void AppendSchemas(std::string& out) {
  AppendGenerateSchemas(out);
  AppendChatSchema(out);
  AppendCompletionSchema(out);
  docs::AppendShapes(out, kShapes);
  out +=
      ",\"VertexRequest\":{\"type\":\"object\",\"required\":[\"instances\"],\"properties\":{"
      "\"instances\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/"
      "GenerateRequest\"},"
      "{\"$ref\":\"#/components/schemas/ChatRequest\"}]}}}}";
}

}  // namespace penstock::router::tgi
