#include "router/api/openai/request.h"

#include <array>

#include "router/api/openai_keys.h"
#include "router/json/schema.h"

namespace penstock::router::openai {
namespace {

using json::MakeField;
using json::MakeFieldOf;

// A completion may have no token, to score its prompt.
template <class T>
constexpr std::string_view kLengthExpected = "a positive integer";
template <>
constexpr std::string_view kLengthExpected<CompletionRequest> = "an integer that is not negative";

template <class T>
constexpr auto kCommon = std::array{
    MakeFieldOf<T, &Common::model>("model", "a string"),
    MakeFieldOf<T, &Common::max_tokens>("max_tokens", kLengthExpected<T>),
    MakeFieldOf<T, &Common::temperature>("temperature", "a number"),
    MakeFieldOf<T, &Common::top_p>("top_p", "a number"),
    MakeFieldOf<T, &Common::n>("n", "a positive integer"),
    MakeFieldOf<T, &Common::stop>("stop", "a string or an array of strings"),
    MakeFieldOf<T, &Common::stream>("stream", "a boolean"),
    MakeFieldOf<T, &Common::stream_options>("stream_options", "an object"),
    MakeFieldOf<T, &Common::seed>("seed", "an integer"),
    MakeFieldOf<T, &Common::frequency_penalty>("frequency_penalty", "a number"),
    MakeFieldOf<T, &Common::presence_penalty>("presence_penalty", "a number"),
    MakeFieldOf<T, &Common::logit_bias>("logit_bias", "an object of token ids and biases"),
    MakeFieldOf<T, &Common::top_k>("top_k", "an integer"),
    MakeFieldOf<T, &Common::min_p>("min_p", "a number"),
    MakeFieldOf<T, &Common::repetition_penalty>("repetition_penalty", "a number"),
    MakeFieldOf<T, &Common::min_tokens>("min_tokens", "an integer that is not negative"),
    MakeFieldOf<T, &Common::ignore_eos>("ignore_eos", "a boolean"),
    MakeFieldOf<T, &Common::stop_token_ids>("stop_token_ids", "an array of token ids"),
    MakeFieldOf<T, &Common::typical_p>("typical_p", "a number"),
    MakeFieldOf<T, &Common::top_n_sigma>("top_n_sigma", "a number"),
    MakeFieldOf<T, &Common::bad_words>("bad_words", "an array of strings"),
    MakeFieldOf<T, &Common::include_stop_str_in_output>("include_stop_str_in_output", "a boolean"),
    MakeFieldOf<T, &Common::prompt_logprobs>("prompt_logprobs", "an integer from 0 on"),
    MakeFieldOf<T, &Common::best_of>("best_of", "a positive integer"),
    MakeFieldOf<T, &Common::use_beam_search>("use_beam_search", "a boolean"),
    MakeFieldOf<T, &Common::length_penalty>("length_penalty", "a number"),
    MakeFieldOf<T, &Common::early_stopping>("early_stopping", "a boolean or \"never\""),
    MakeFieldOf<T, &Common::response_format>("response_format", "an object"),
    MakeFieldOf<T, &Common::structured_outputs>("structured_outputs", "an object"),
    MakeFieldOf<T, &Common::guided_json>("guided_json", "an object or a string"),
    MakeFieldOf<T, &Common::guided_regex>("guided_regex", "a string"),
    MakeFieldOf<T, &Common::guided_choice>("guided_choice", "an array of strings"),
    MakeFieldOf<T, &Common::guided_grammar>("guided_grammar", "a string"),
    json::WithoutEffect<T>("guided_decoding_backend"),
};

constexpr auto kChat = json::Join(
    json::Join(kCommon<ChatRequest>, kOpenAiChatKeysWithoutEffect<ChatRequest>),
    std::array{
        MakeFieldOf<ChatRequest, &ChatRequest::messages>("messages", "an array", true),
        MakeFieldOf<ChatRequest, &ChatRequest::max_completion_tokens>("max_completion_tokens",
                                                                      "a positive integer"),
        MakeFieldOf<ChatRequest, &ChatRequest::logprobs>("logprobs", "a boolean"),
        MakeFieldOf<ChatRequest, &ChatRequest::top_logprobs>("top_logprobs",
                                                             "an integer from 0 on"),
        MakeFieldOf<ChatRequest, &ChatRequest::tools>("tools", "an array"),
        MakeFieldOf<ChatRequest, &ChatRequest::tool_choice>("tool_choice", "a string or an object"),
        MakeFieldOf<ChatRequest, &ChatRequest::modalities>("modalities", "an array of strings"),
        MakeFieldOf<ChatRequest, &ChatRequest::functions>("functions", "an array"),
        MakeFieldOf<ChatRequest, &ChatRequest::function_call>("function_call",
                                                              "a string or an object"),
        MakeFieldOf<ChatRequest, &ChatRequest::audio>("audio", "an object"),
        MakeFieldOf<ChatRequest, &ChatRequest::moderation>("moderation", "an object"),
        MakeFieldOf<ChatRequest, &ChatRequest::web_search_options>("web_search_options",
                                                                   "an object"),
        MakeFieldOf<ChatRequest, &ChatRequest::chat_template>("chat_template", "a string"),
        MakeFieldOf<ChatRequest, &ChatRequest::chat_template_kwargs>("chat_template_kwargs",
                                                                     "an object"),
        MakeFieldOf<ChatRequest, &ChatRequest::reasoning_effort>("reasoning_effort", "a string"),
        MakeFieldOf<ChatRequest, &ChatRequest::thinking_budget>("thinking_budget",
                                                                "an integer that is not negative"),
        MakeFieldOf<ChatRequest, &ChatRequest::parallel_tool_calls>("parallel_tool_calls",
                                                                    "a boolean"),
        MakeFieldOf<ChatRequest, &ChatRequest::add_generation_prompt>("add_generation_prompt",
                                                                      "a boolean"),
    });

constexpr auto kCompletion = json::Join(
    json::Join(kCommon<CompletionRequest>, kOpenAiCompletionKeysWithoutEffect<CompletionRequest>),
    std::array{
        MakeFieldOf<CompletionRequest, &CompletionRequest::prompt>(
            "prompt", "a string, an array of strings or of token ids", true),
        MakeFieldOf<CompletionRequest, &CompletionRequest::logprobs>("logprobs",
                                                                     "an integer from 0 on"),
        MakeFieldOf<CompletionRequest, &CompletionRequest::echo>("echo", "a boolean"),
        MakeFieldOf<CompletionRequest, &CompletionRequest::suffix>("suffix", "a string"),
    });

constexpr auto kTokenize = std::array{
    MakeFieldOf<TokenizeRequest, &Common::model>("model", "a string"),
    MakeField<&TokenizeRequest::prompt>("prompt", "a string"),
    MakeFieldOf<TokenizeRequest, &ChatRequest::messages>("messages", "an array"),
    MakeField<&TokenizeRequest::add_special_tokens>("add_special_tokens", "a boolean"),
    MakeField<&TokenizeRequest::return_token_strs>("return_token_strs", "a boolean"),
    MakeFieldOf<TokenizeRequest, &ChatRequest::add_generation_prompt>("add_generation_prompt",
                                                                      "a boolean"),
    MakeField<&TokenizeRequest::continue_final_message>("continue_final_message", "a boolean"),
    MakeFieldOf<TokenizeRequest, &ChatRequest::tools>("tools", "an array"),
    MakeFieldOf<TokenizeRequest, &ChatRequest::chat_template>("chat_template", "a string"),
    MakeFieldOf<TokenizeRequest, &ChatRequest::chat_template_kwargs>("chat_template_kwargs",
                                                                     "an object"),
    MakeFieldOf<TokenizeRequest, &ChatRequest::reasoning_effort>("reasoning_effort", "a string"),
};

constexpr auto kDetokenize = std::array{
    MakeField<&DetokenizeRequest::model>("model", "a string"),
    MakeField<&DetokenizeRequest::tokens>("tokens", "an array of token ids", true),
};

}  // namespace

const BodyRules kRules = {.limits = kPythonLimits, .to_error = FromJsonInWords};

void AppendRequestSchemas(std::string& out) {
  json::AppendSchema<ChatRequest>(out, "OpenAiChatRequest", kChat);
  json::AppendSchema<CompletionRequest>(out, "OpenAiCompletionRequest", kCompletion);
  json::AppendSchema<TokenizeRequest>(out, "TokenizeRequest", kTokenize);
  json::AppendSchema<DetokenizeRequest>(out, "DetokenizeRequest", kDetokenize);
}

Parsed<ChatRequest> ParseChat(std::string_view body) {
  return Parse(body, kRules, kChat, "an object");
}

Parsed<CompletionRequest> ParseCompletion(std::string_view body) {
  return Parse(body, kRules, kCompletion, "an object");
}

Parsed<TokenizeRequest> ParseTokenize(std::string_view body) {
  return Parse(body, kRules, kTokenize, "an object");
}

Parsed<DetokenizeRequest> ParseDetokenize(std::string_view body) {
  return Parse(body, kRules, kDetokenize, "an object");
}

}  // namespace penstock::router::openai
