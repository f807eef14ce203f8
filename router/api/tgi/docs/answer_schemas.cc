#include <string>

#include "router/api/tgi/docs/schemas.h"
#include "router/api/tgi/generate/shapes.h"

namespace penstock::router::tgi {
namespace {

// Names and shapes are those of TGI's document where it has them. A client that is generated from
// ours must find every key that the writers of answers write, and no other
// (tests/integration/test_openapi.py).
constexpr Shape kShapes[] = {
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
     "max_batch_total_tokens?:integer"},
    {"ModelInfo", "id:string object:string created:integer owned_by:string max_model_len?:integer"},
    {"ModelsInfo", "object:string data:ModelInfo[]"},
    // TGI's chats and completions
    {"Usage", "prompt_tokens:integer completion_tokens:integer total_tokens:integer"},
    {"ChatCompletionTopLogprob", "token:string logprob:number"},
    {"ChatCompletionLogprob",
     "token:string logprob:number top_logprobs:ChatCompletionTopLogprob[]"},
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
    // OpenAI's
    {"OpenAiError", "message:string type:string param:string? code:string?"},
    {"OpenAiErrorResponse", "error:OpenAiError"},
    {"PromptTokensDetails", "cached_tokens:integer"},
    {"CompletionTokensDetails", "reasoning_tokens:integer"},
    {"OpenAiUsage",
     "prompt_tokens:integer completion_tokens:integer total_tokens:integer "
     "prompt_tokens_details:PromptTokensDetails "
     "completion_tokens_details:CompletionTokensDetails"},
    {"OpenAiTopLogprob", "token:string logprob:number bytes:integer[]"},
    {"OpenAiLogprob",
     "token:string logprob:number bytes:integer[] top_logprobs:OpenAiTopLogprob[]"},
    {"OpenAiLogprobs", "content:OpenAiLogprob[] refusal:string?"},
    {"OpenAiMessage", "role:string content:string refusal:string?"},
    {"OpenAiChatChoice",
     "index:integer message:OpenAiMessage logprobs:OpenAiLogprobs? finish_reason:string"},
    {"OpenAiChatCompletion",
     "id:string object:string created:integer model:string system_fingerprint:string "
     "choices:OpenAiChatChoice[] usage:OpenAiUsage"},
    {"OpenAiDelta", "role?:string content?:string"},
    {"OpenAiChunkChoice",
     "index:integer delta:OpenAiDelta logprobs:OpenAiLogprobs? finish_reason:string?"},
    {"OpenAiChatChunk",
     "id:string object:string created:integer model:string system_fingerprint:string "
     "choices:OpenAiChunkChoice[] usage?:OpenAiUsage?"},
    {"OpenAiTextLogprobs",
     "tokens:string[] token_logprobs:number[] top_logprobs:number{}?[] text_offset:integer[]"},
    {"OpenAiTextChoice",
     "index:integer text:string logprobs:OpenAiTextLogprobs? finish_reason:string?"},
    {"OpenAiCompletion",
     "id:string object:string created:integer model:string system_fingerprint:string "
     "choices:OpenAiTextChoice[] usage?:OpenAiUsage?"},
    // DJL-Serving's
    {"DjlToken",
     "id:integer text:string log_prob?:number? logprob?:number? special?:boolean "
     "special_token?:boolean error_msg?:string"},
    {"DjlDetails",
     "finish_reason:string generated_tokens?:integer seed?:integer? inputs?:string "
     "tokens?:DjlToken[] prefill?:DjlToken[] top_tokens?:DjlToken[]"},
    {"DjlResponse", "generated_text:string details?:DjlDetails"},
    {"DjlErrorResponse",
     "code:integer type?:string message?:string error?:string generated_text?:string? "
     "details?:DjlDetails"},
    {"DjlPart", ":DjlResponse,DjlErrorResponse"},
    {"DjlAnswer", ":DjlResponse,DjlPart[]"},
    {"DjlStreamResponse",
     "index?:integer token:DjlToken top_tokens?:DjlToken[] generated_text?:string? code?:integer "
     "error?:string details?:DjlDetails"},
    // effective-batching's
    {"InferenceDetails",
     "request:integer prompt_tokens:integer seed:integer queue_ms:number first_token_ms:number "
     "total_ms:number tokens:integer[]"},
    {"InferenceResponse", "completion:string details?:InferenceDetails"},
    {"Spread", "count:integer mean:number p50:number p90:number p99:number max:number"},
    {"Stats",
     "latency-per-token:number throughput:number total-tokens-handled:integer "
     "total-elapsed-time:number batching:string requests:integer failed:integer "
     "in-flight:integer wall-clock-seconds:number tokens-per-second:number "
     "requests-per-second:number latency-seconds:Spread "
     "latency-from-intended-arrival-seconds:Spread time-to-first-token-seconds:Spread "
     "inter-token-latency-seconds:Spread breakdown:number{}"},
    {"StatsReset", "reset:boolean"},
    // Our own
    {"Status", "status:string detail?:string"},
    {"Wait", "short_of:string needed:integer available:integer behind?:integer"},
    {"Decision",
     "after_ms:number decision:string parts?:integer part?:integer short_of?:string "
     "needed?:integer available?:integer behind?:integer step?:integer"},
    {"RequestRecord",
     "request:integer client_id:string state:string prompt_tokens:integer "
     "generated_tokens:integer cached_tokens:integer preemptions:integer waits_for?:Wait "
     "decisions:Decision[]"},
    {"CachedPrompt",
     "id:integer prompt:string tokens:integer blocks:integer group:integer uses:integer "
     "unused_seconds:number"},
    {"CachedPrompts", "cached_prompts:CachedPrompt[]"},
    {"Forgotten", "forgotten:integer"},
};

}  // namespace

void AppendAnswerSchemas(std::string& out) {
  for (const Shape& shape : kShapes) {
    if (&shape != kShapes) out += ',';
    AppendShape(out, shape);
  }
}

}  // namespace penstock::router::tgi
