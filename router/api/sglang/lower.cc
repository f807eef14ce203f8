#include "router/api/sglang/lower.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/sglang/dialect.h"
#include "router/http/request_id.h"

namespace penstock::router::sglang {
namespace {

using Check = std::optional<ApiError>;

constexpr std::uint32_t kNewTokens = 128;  // SGLang's default of max_new_tokens

constexpr std::string_view kNotSupported = "is not supported";

Check CheckFeatures(const Request& request) {
  const std::pair<std::string_view, const std::optional<json::Raw>*> refused[] = {
      {"input_embeds", &request.input_embeds},
      {"image_data", &request.image_data},
      {"video_data", &request.video_data},
      {"audio_data", &request.audio_data},
      {"token_ids_logprob", &request.token_ids_logprob},
      {"session_params", &request.session_params},
      {"custom_logit_processor", &request.custom_logit_processor}};
  for (const auto& [name, value] : refused) {
    if (*value) return Unsupported(name, kNotSupported);
  }
  if (request.return_hidden_states) return Unsupported("return_hidden_states", kNotSupported);
  return std::nullopt;
}

template <class T>
Check CheckSize(std::string_view field, const PerPrompt<T>& values, std::size_t prompts) {
  if (!values.listed || values.values.size() == prompts) return std::nullopt;
  return Invalid(field, "must have a value for each of the " + std::to_string(prompts) +
                            " prompts. Given: " + std::to_string(values.values.size()));
}

Check CheckSizes(const Request& request) {
  const std::size_t prompts = request.prompts();
  if (auto error = CheckSize("sampling_params", request.sampling_params, prompts)) return error;
  if (auto error = CheckSize("rid", request.rid, prompts)) return error;
  if (auto error = CheckSize("return_logprob", request.return_logprob, prompts)) return error;
  if (auto error = CheckSize("logprob_start_len", request.logprob_start_len, prompts)) return error;
  if (auto error = CheckSize("top_logprobs_num", request.top_logprobs_num, prompts)) return error;
  return CheckSize("lora_path", request.lora_path, prompts);
}

const Sampling& SamplingOf(const Request& request, std::size_t prompt) {
  static const Sampling defaults;
  return request.sampling_params.Of(prompt, defaults);
}

Check CheckPrompts(const ApiContext& context, const Request& request) {
  if (!request.text.values.empty() && !request.input_ids.list.empty()) {
    return Invalid("input_ids", "must be absent beside `text`");
  }
  if (request.prompts() == 0) return Invalid("text", "must have at least one prompt");
  if (auto error = CheckSizes(request)) return error;
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < request.prompts(); ++i) {
    const std::uint32_t n = SamplingOf(request, i).n;
    if (n == 0) return MustBe("sampling_params.n", "at least 1", "0");
    answers += n;
  }
  const std::uint64_t most = context.options.max_concurrent_requests;
  if (answers <= most) return std::nullopt;
  return ApiError{ApiErrorKind::kBatchSize,
                  "a request must have at most " + std::to_string(most) +
                      " answers (--max-concurrent-requests). Given: " + std::to_string(answers),
                  request.tokens() ? "input_ids" : "text"};
}

Check CheckNames(const Request& request) {
  for (const std::string& rid : request.rid.values) {
    if (IsRequestId(rid)) continue;
    return MustBe("rid", "1 to 128 of letters, digits and ._-:", json::DescribeString(rid));
  }
  return std::nullopt;
}

// An empty string is no grammar.
std::optional<json::Raw> GrammarIn(const std::optional<json::Raw>& raw) {
  if (!raw || raw->text == "\"\"") return std::nullopt;
  return raw;
}

// What means the same as a body of OpenAI's completions.
openai::CompletionRequest ToCompletion(const Sampling& sampling) {
  openai::CompletionRequest to;
  to.max_tokens = sampling.max_new_tokens.value_or(kNewTokens);
  to.min_tokens = sampling.min_new_tokens;
  to.stop = sampling.stop;
  to.stop_token_ids = sampling.stop_token_ids;
  to.temperature = sampling.temperature;
  to.top_p = sampling.top_p;
  to.top_k = sampling.top_k;
  to.min_p = sampling.min_p;
  to.frequency_penalty = sampling.frequency_penalty;
  to.presence_penalty = sampling.presence_penalty;
  to.repetition_penalty = sampling.repetition_penalty;
  to.ignore_eos = sampling.ignore_eos;
  to.include_stop_str_in_output = sampling.no_stop_trim;
  to.seed = sampling.sampling_seed;
  to.logit_bias = sampling.logit_bias;
  to.guided_regex = GrammarIn(sampling.regex);
  to.guided_json = GrammarIn(sampling.json_schema);
  to.guided_grammar = GrammarIn(sampling.ebnf);
  if (const auto tag = GrammarIn(sampling.structural_tag)) {
    to.structured_outputs.emplace().structural_tag = tag;
  }
  return to;
}

// Calls the fields of an error about a completion as the client does.
ApiError AsAsked(ApiError error, bool tokens) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kNames = {{
      {"structured_outputs.structural_tag", "sampling_params.structural_tag"},
      {"structured_outputs", "sampling_params.structural_tag"},
      {"guided_regex", "sampling_params.regex"},
      {"guided_json", "sampling_params.json_schema"},
      {"guided_grammar", "sampling_params.ebnf"},
      {"max_tokens", "sampling_params.max_new_tokens"},
      {"min_tokens", "sampling_params.min_new_tokens"},
      {"temperature", "sampling_params.temperature"},
      {"top_p", "sampling_params.top_p"},
      {"top_k", "sampling_params.top_k"},
      {"min_p", "sampling_params.min_p"},
      {"frequency_penalty", "sampling_params.frequency_penalty"},
      {"presence_penalty", "sampling_params.presence_penalty"},
      {"repetition_penalty", "sampling_params.repetition_penalty"},
      {"stop", "sampling_params.stop"},
      {"stop_token_ids", "sampling_params.stop_token_ids"},
      {"logit_bias", "sampling_params.logit_bias"},
      {"logprobs", "top_logprobs_num"},
      {"model", "lora_path"},
      {"prompt", ""},
  }};
  std::string field = error.field;
  for (const auto& [from, name] : kNames) {
    const std::string_view to = !name.empty() ? name : tokens ? "input_ids" : "text";
    if (field == from) field = to;
    error.field = from;
    RenameField(error, std::string(to));
  }
  error.field = std::move(field);
  return error;
}

struct PromptPlan {
  GenerationRequest request;
  ResultStyle style;
};

std::variant<PromptPlan, ApiError> LowerPrompt(const ApiContext& context, Request& request,
                                               std::size_t i) {
  const Sampling& sampling = SamplingOf(request, i);
  if (!sampling.stop_regex.strings.empty()) {
    return Unsupported("sampling_params.stop_regex", kNotSupported);
  }
  if (sampling.beam_width > 1) return Unsupported("sampling_params.beam_width", kNotSupported);
  PromptPlan plan;
  ResultStyle& style = plan.style;
  style.prompt_only = sampling.max_new_tokens == 0u;
  style.logprobs = request.return_logprob.Of(i, false);
  if (style.logprobs) style.logprob_start = request.logprob_start_len.Of(i, -1);
  style.top_logprobs = style.logprobs ? request.top_logprobs_num.Of(i, 0) : 0;
  style.texts = request.return_text_in_logprobs;

  openai::CompletionRequest completion = ToCompletion(sampling);
  completion.model = request.lora_path.Of(i, std::nullopt).value_or("");
  if (style.logprobs) completion.logprobs = style.top_logprobs;
  if (request.tokens()) {
    completion.prompt.list.emplace_back(std::move(request.input_ids.list[i]));
  } else {
    completion.prompt.list.emplace_back(std::move(request.text.values[i]));
  }
  auto lowered = openai::LowerCompletion(context, completion, "");
  if (const auto* error = std::get_if<ApiError>(&lowered)) {
    return AsAsked(*error, request.tokens());
  }
  plan.request = std::move(std::get<std::vector<GenerationRequest>>(lowered).front());
  plan.request.exact_length = sampling.max_new_tokens.value_or(0) > 0;
  // The frontend sends the text that branches share before it sends the branches.
  plan.request.hold_prompt = style.prompt_only && !style.logprobs;
  if (style.logprobs) plan.request.decode_alone = true;
  if (style.logprob_start >= 0) {
    plan.request.logprobs.prompt_logprobs = true;
    if (style.top_logprobs > 0) plan.request.logprobs.prompt_top_n = style.top_logprobs;
  }
  return plan;
}

// The id of an answer: SGLang numbers those of one name.
std::string IdOf(const Request& request, std::size_t prompt, std::size_t answer, bool alone,
                 const std::string& request_id) {
  const std::string& name = request.rid.Of(prompt, request_id);
  return alone ? name : name + "_" + std::to_string(answer);
}

class Format final : public ErrorFormat {
 public:
  Format(bool tokens, std::string_view grammar) : tokens_(tokens), grammar_(grammar) {}

  int Status(ApiErrorKind kind) const override { return Errors().Status(kind); }
  std::string Body(const ApiError& error) const override { return Errors().Body(error); }
  std::string_view Schema() const override { return Errors().Schema(); }
  ApiError FromEngine(const GenerationError& error, const ApiOptions& options) const override {
    return AsAsked(
        openai::ErrorsAbout({"prompt", "max_tokens", grammar_}).FromEngine(error, options),
        tokens_);
  }

 private:
  const bool tokens_;
  const std::string_view grammar_;
};

}  // namespace

std::variant<Lowered, ApiError> Lower(const ApiContext& context, Request request,
                                      const std::string& request_id) {
  if (auto error = CheckFeatures(request)) return *std::move(error);
  if (auto error = CheckPrompts(context, request)) return *std::move(error);
  if (auto error = CheckNames(request)) return *std::move(error);
  Lowered lowered;
  lowered.style.listed = request.listed() || SamplingOf(request, 0).n > 1;
  for (std::size_t i = 0; i < request.prompts(); ++i) {
    auto plan = LowerPrompt(context, request, i);
    if (auto* error = std::get_if<ApiError>(&plan)) return std::move(*error);
    auto& [base, style] = std::get<PromptPlan>(plan);
    const std::uint32_t n = SamplingOf(request, i).n;
    for (std::uint32_t k = 0; k < n; ++k) {
      style.id = IdOf(request, i, lowered.candidates.size(),
                      n == 1 && (request.rid.listed || !request.listed()), request_id);
      base.client_id = style.id;
      base.sampling.sibling = k;
      lowered.candidates.push_back(base);
      lowered.style.results.push_back(style);
    }
  }
  return lowered;
}

const ErrorFormat& ErrorsAbout(const Request& request) {
  static const auto formats = [] {
    std::vector<Format> all;
    for (const bool tokens : {false, true}) {
      for (const std::string_view grammar :
           {"guided_regex", "guided_json", "guided_grammar", "structured_outputs"}) {
        all.emplace_back(tokens, grammar);
      }
    }
    return all;
  }();
  const Sampling& sampling = SamplingOf(request, 0);
  std::size_t grammar = 0;
  if (GrammarIn(sampling.json_schema)) grammar = 1;
  if (GrammarIn(sampling.ebnf)) grammar = 2;
  if (GrammarIn(sampling.structural_tag)) grammar = 3;
  return formats[(request.tokens() ? 4 : 0) + grammar];
}

}  // namespace penstock::router::sglang
