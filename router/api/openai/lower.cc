#include "router/api/openai/lower.h"
#include "router/api/adapters.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "router/api/openai/reasoning.h"
#include "router/api/openai/tool_grammar.h"
#include "router/json/reader.h"
#include "router/json/unicode.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 256;
constexpr std::uint32_t kMaxTopLogprobs = 20;
constexpr float kGreatestSigma = 1000;
constexpr float kGreatestLengthPenalty = 10;
constexpr std::size_t kMaxTemplateBytes = std::size_t{256} << 10;
constexpr std::size_t kMaxBadWords = 128;
constexpr std::size_t kMaxBadWordBytes = 256;
constexpr std::uint32_t kCompletionTokens = 16;  // OpenAI's default of max_tokens

constexpr std::string_view kNotWithBeams = "is not supported with `use_beam_search`";

using Check = std::optional<ApiError>;

std::string Text(float value) {
  std::string text;
  json::AppendFloat(text, value);
  return text == "null" ? "infinity" : text;
}

std::string UpTo(std::uint32_t most) { return "from 1 to " + std::to_string(most); }

ApiError MustHave(std::string_view field, const std::string& limit, std::size_t given) {
  return Invalid(field, "must have " + limit + ". Given: " + std::to_string(given));
}

Check InRange(std::string_view field, const std::optional<float>& value, float least,
              float greatest) {
  if (!value || (*value >= least && *value <= greatest)) return std::nullopt;
  return MustBe(field, "from " + Text(least) + " to " + Text(greatest), Text(*value));
}

Check CheckSampling(const Common& c) {
  if (auto error = InRange("temperature", c.temperature, 0, 2)) return error;
  if (auto error = InRange("top_p", c.top_p, 0, 1)) return error;
  if (auto error = InRange("frequency_penalty", c.frequency_penalty, -2, 2)) return error;
  if (auto error = InRange("presence_penalty", c.presence_penalty, -2, 2)) return error;
  if (auto error = InRange("min_p", c.min_p, 0, 1)) return error;
  if (c.typical_p && !(*c.typical_p > 0 && *c.typical_p <= 1)) {
    return MustBe("typical_p", "above 0 and at most 1", Text(*c.typical_p));
  }
  if (auto error = InRange("top_n_sigma", c.top_n_sigma, -1, kGreatestSigma)) return error;
  if (c.repetition_penalty && !(*c.repetition_penalty > 0 && *c.repetition_penalty <= 1e6f)) {
    return MustBe("repetition_penalty", "greater than 0 and at most 1e6",
                  Text(*c.repetition_penalty));
  }
  if (c.top_k && *c.top_k < -1) {
    return MustBe("top_k", "positive, or 0 or -1 for none", std::to_string(*c.top_k));
  }
  return std::nullopt;
}

Check CheckStops(const Common& c) {
  if (c.stop.strings.size() > kMaxStops) {
    return MustHave("stop", "at most " + std::to_string(kMaxStops) + " strings",
                    c.stop.strings.size());
  }
  for (const std::string& stop : c.stop.strings) {
    if (stop.empty()) return Invalid("stop", "must not have an empty string");
    if (stop.size() > kMaxStopBytes) {
      return MustHave("stop", "strings of at most " + std::to_string(kMaxStopBytes) + " bytes",
                      stop.size());
    }
  }
  return std::nullopt;
}

Check CheckBadWords(const Common& c) {
  if (c.bad_words.size() > kMaxBadWords) {
    return MustHave("bad_words", "at most " + std::to_string(kMaxBadWords) + " strings",
                    c.bad_words.size());
  }
  for (const std::string& word : c.bad_words) {
    if (word.find_first_not_of(' ') == word.npos) {
      return MustBe("bad_words", "strings that are not blank", json::DescribeString(word));
    }
    if (word.size() > kMaxBadWordBytes) {
      return MustHave("bad_words",
                      "strings of at most " + std::to_string(kMaxBadWordBytes) + " bytes",
                      word.size());
    }
  }
  return std::nullopt;
}

Check CheckBias(const Common& c, std::uint32_t vocabulary) {
  if (!c.logit_bias.bad_key.empty()) {
    return MustBe("logit_bias", "keyed by token ids", json::DescribeString(c.logit_bias.bad_key));
  }
  std::vector<TokenId> ids;
  for (const auto& entry : c.logit_bias.entries) ids.push_back(entry.token);
  return CheckTokenIds("logit_bias", ids, vocabulary);
}

Check CheckBestOf(const ApiContext& context, const Common& request) {
  if (!request.best_of) return std::nullopt;
  const std::uint32_t n = request.n.value_or(1);
  const std::uint32_t most = context.options.max_best_of;
  if (*request.best_of < n || *request.best_of > most) {
    const std::string range = "from `n`, " + std::to_string(n) + ", to " + std::to_string(most);
    return MustBe("best_of", range + " (--max-best-of)", std::to_string(*request.best_of));
  }
  if (request.stream && *request.best_of > n) {
    return Unsupported("best_of", "above `n` is not supported in a stream");
  }
  return std::nullopt;
}

// A beam search compares whole texts, and keeps the state of none. Without one clients may send the
// defaults of its keys.
Check CheckBeams(const Common& c) {
  const bool early = c.early_stopping.rule != EarlyStopping::kEstimate;
  if (!c.use_beam_search) {
    if (c.length_penalty == 1 && !early) return std::nullopt;
    return Unsupported(early ? "early_stopping" : "length_penalty", "needs `use_beam_search`");
  }
  if (c.stream) return Unsupported("stream", kNotWithBeams);
  if (!c.stop.strings.empty()) return Unsupported("stop", kNotWithBeams);
  if (c.frequency_penalty.value_or(0) != 0) return Unsupported("frequency_penalty", kNotWithBeams);
  if (c.presence_penalty.value_or(0) != 0) return Unsupported("presence_penalty", kNotWithBeams);
  return InRange("length_penalty", c.length_penalty, -kGreatestLengthPenalty,
                 kGreatestLengthPenalty);
}

Check CheckCommon(const ApiContext& context, const Common& c) {
  if (auto error = CheckModel(context, c.model)) return error;
  const std::uint32_t n = c.n.value_or(1);
  if (n == 0 || n > context.options.max_best_of) {
    return MustBe("n", UpTo(context.options.max_best_of) + " (--max-best-of)", std::to_string(n));
  }
  if (c.prompt_logprobs.value_or(0) > kMaxTopLogprobs) {
    return MustBe("prompt_logprobs", "from 0 to " + std::to_string(kMaxTopLogprobs),
                  std::to_string(*c.prompt_logprobs));
  }
  if (auto error = CheckBestOf(context, c)) return error;
  if (auto error = CheckBeams(c)) return error;
  if (c.prompt_logprobs && c.stream) {
    return Unsupported("prompt_logprobs", "are not supported in a stream");
  }
  if (auto error = CheckSampling(c)) return error;
  if (auto error = CheckStops(c)) return error;
  if (auto error = CheckBadWords(c)) return error;
  const std::uint32_t vocabulary = context.engine.Facts().vocabulary;
  if (auto error = CheckBias(c, vocabulary)) return error;
  return CheckTokenIds("stop_token_ids", c.stop_token_ids, vocabulary);
}

Check CheckLength(const Common& c, std::string_view field, std::optional<std::uint32_t> most) {
  if (!most || c.min_tokens <= *most) return std::nullopt;
  const std::string limit = "at most `" + std::string(field) + "`, " + std::to_string(*most);
  return MustBe("min_tokens", limit, std::to_string(c.min_tokens));
}

bool OffersGrammars(const ApiContext& context) {
  return context.options.grammar && context.engine.Facts().has_grammar;
}

// Adds the grammar of the body, if the server offers grammars.
Check AddGrammar(const ApiContext& context, const Common& request, GenerationRequest& lowered) {
  auto read = LowerGrammar(request);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  lowered.grammar = std::get<Grammar>(std::move(read));
  if (lowered.grammar && request.use_beam_search) {
    return Unsupported(GrammarKeyOf(request), kNotWithBeams);
  }
  if (!lowered.grammar || OffersGrammars(context)) return std::nullopt;
  return ApiError{ApiErrorKind::kUnsupported, "the server does not offer grammars",
                  std::string(GrammarKeyOf(request))};
}

// If a call is required, its grammar replaces the grammar of the body.
Check AddToolGrammar(const ApiContext& context, const ChatRequest& request,
                     const ToolChoice& choice, GenerationRequest& lowered) {
  if (!choice.NeedsGrammar() || (lowered.grammar && !choice.required)) return std::nullopt;
  if (request.use_beam_search) {
    return Unsupported(choice.required ? "tool_choice" : "tools", kNotWithBeams);
  }
  if (!OffersGrammars(context)) {
    return Unsupported(choice.required ? "tool_choice" : "tools",
                       choice.required ? "`required` or of a tool needs grammars, which the server "
                                         "does not offer"
                                       : "with `strict` need grammars, which the server does not "
                                         "offer");
  }
  lowered.grammar = ToolGrammar(context, choice, request.parallel_tool_calls);
  return std::nullopt;
}

// The grammar is about what follows the reasoning, whose length may be bounded.
Check AddReasoning(const ApiContext& context, const ChatRequest& request, const ToolChoice& choice,
                   GenerationRequest& lowered) {
  auto budget = ThinkingBudget(request);
  if (auto* error = std::get_if<ApiError>(&budget)) return std::move(*error);
  const auto& most = std::get<std::optional<std::uint32_t>>(budget);
  if (most && request.use_beam_search) return Unsupported("thinking_budget", kNotWithBeams);
  if (most && !OffersGrammars(context)) {
    return Unsupported("thinking_budget", "needs grammars, which the server does not offer");
  }
  if (most && context.options.answer_format->reasoning.empty()) {
    return Unsupported("thinking_budget",
                       "needs a chat template that shows how the model reasons, or --tool-format");
  }
  const bool content = HasGrammar(request) && !choice.required;
  lowered.reasoning = ReasoningOf(context, request, most, !content);
  return std::nullopt;
}

void AskForPrompt(LogprobRequest& logprobs, std::uint32_t top_n) {
  logprobs.prompt_logprobs = true;
  logprobs.prompt_top_n = std::max(logprobs.prompt_top_n.value_or(0), top_n);
}

GenerationRequest LowerCommon(const Common& c, const std::string& client_id) {
  GenerationRequest request;
  request.client_id = client_id;
  request.min_new_tokens = c.min_tokens;
  request.stop = c.stop.strings;
  request.stop_token_ids = c.stop_token_ids;
  request.ignore_eos = c.ignore_eos;
  request.bad_words = c.bad_words;
  if (c.include_stop_str_in_output) request.stop_rule = StopRule::kShow;
  if (c.seed && *c.seed >= 0) request.seed = static_cast<std::uint64_t>(*c.seed);
  SamplingParams& s = request.sampling;
  const float temperature = c.temperature.value_or(1.0f);
  const float top_p = c.top_p.value_or(1.0f);
  // Temperature 0 and top_p 0 both mean greedy decoding.
  s.do_sample = temperature > 0 && top_p > 0;
  if (s.do_sample) {
    s.temperature = temperature;
    s.top_p = top_p;
    s.top_k = static_cast<std::uint32_t>(std::max(0, c.top_k.value_or(0)));
    s.min_p = std::min(c.min_p.value_or(0.0f), 0.999999f);
    s.typical_p = c.typical_p.value_or(1.0f);
    s.top_n_sigma = std::max(0.0f, c.top_n_sigma.value_or(0.0f));
  }
  s.repetition_penalty = c.repetition_penalty.value_or(1.0f);
  s.frequency_penalty = c.frequency_penalty.value_or(0.0f);
  s.presence_penalty = c.presence_penalty.value_or(0.0f);
  s.logit_bias = c.logit_bias.entries;
  if (c.prompt_logprobs) AskForPrompt(request.logprobs, *c.prompt_logprobs);
  if (c.use_beam_search) {
    const std::uint32_t n = c.n.value_or(1);
    request.beams = BeamParams{.width = c.best_of.value_or(n),
                               .results = n,
                               .length_penalty = c.length_penalty,
                               .early_stopping = c.early_stopping.rule};
    s.do_sample = false;
  }
  return request;
}

// Only the first of a prompt's `n` choices reports the prompt, except in a stream.
void AddChoices(std::vector<GenerationRequest>& all, const GenerationRequest& request,
                std::uint32_t n, bool stream) {
  for (std::uint32_t i = 0; i < n; ++i) {
    GenerationRequest& choice = all.emplace_back(request);
    choice.sampling.sibling = i;
    if (i == 0 || stream) continue;
    choice.show_prompt = false;
    choice.logprobs.prompt_logprobs = false;
    choice.logprobs.prompt_top_n.reset();
  }
}

bool IsEmptyArray(const std::optional<json::Raw>& raw) {
  if (!raw) return true;
  json::Reader reader(raw->text);
  return reader.EnterArray("") && !reader.NextElement() && reader.ok();
}

// The string that a raw value is, or nothing.
std::optional<std::string> AsString(const std::optional<json::Raw>& raw) {
  if (!raw || !raw->text.starts_with('"')) return std::nullopt;
  std::string text;
  json::Reader reader(raw->text);
  if (!reader.ReadString(text, "")) return std::nullopt;
  return text;
}

// Keys that would give another kind of answer.
Check CheckAnswerKind(const ChatRequest& request) {
  for (const std::string& modality : request.modalities.value_or(std::vector<std::string>())) {
    if (modality != "text")
      return MustBe("modalities", "[\"text\"]", json::DescribeString(modality));
  }
  if (request.audio) return Unsupported("audio", "is not supported: answers are text");
  if (request.moderation) return Unsupported("moderation", "is not supported");
  if (request.web_search_options) return Unsupported("web_search_options", "are not supported");
  if (!IsEmptyArray(request.functions) && AsString(request.function_call) != "none") {
    return Unsupported("functions", "are not supported");
  }
  return std::nullopt;
}

// A template may be any program, so the operator decides whether clients are trusted with it.
Check CheckChatTemplate(const ApiContext& context, const ChatRequest& request) {
  if (!request.chat_template) return std::nullopt;
  if (!context.options.trust_request_chat_template) {
    return Unsupported("chat_template", "in a request needs --trust-request-chat-template");
  }
  const std::optional<std::string> source = AsString(request.chat_template);
  if (!source)
    return MustBe("chat_template", "a string", request.chat_template->text.substr(0, 100));
  if (source->size() <= kMaxTemplateBytes) return std::nullopt;
  return MustHave("chat_template", "at most " + std::to_string(kMaxTemplateBytes) + " bytes",
                  source->size());
}

Check CheckEffort(const std::optional<std::string>& effort) {
  constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                           "high", "xhigh",   "max"};
  if (!effort || std::ranges::find(kEfforts, *effort) != std::end(kEfforts)) return std::nullopt;
  return MustBe("reasoning_effort", "none, minimal, low, medium, high, xhigh or max",
                json::DescribeString(*effort));
}

Check CheckChatFeatures(const ChatRequest& request) {
  if (auto error = CheckAnswerKind(request)) return error;
  if (auto error = CheckEffort(request.reasoning_effort)) return error;
  if (request.max_tokens == 0u) return MustBe("max_tokens", "at least 1", "0");
  if (request.top_logprobs && !request.logprobs) {
    return MustBe("top_logprobs", "absent unless `logprobs` is true",
                  std::to_string(*request.top_logprobs));
  }
  if (request.top_logprobs.value_or(0) > kMaxTopLogprobs) {
    return MustBe("top_logprobs", "from 0 to " + std::to_string(kMaxTopLogprobs),
                  std::to_string(*request.top_logprobs));
  }
  if (request.best_of && !request.use_beam_search) {
    return Unsupported("best_of", "of a chat needs `use_beam_search`");
  }
  if (request.max_completion_tokens && *request.max_completion_tokens == 0) {
    return MustBe("max_completion_tokens", "at least 1", "0");
  }
  return std::nullopt;
}

Check CheckCompletionFeatures(const ApiContext& context, const CompletionRequest& request) {
  if (!request.suffix.empty()) return Unsupported("suffix", "is not supported");
  const std::size_t prompts = request.prompt.list.size();
  if (prompts == 0 || prompts > context.options.max_client_batch_size) {
    return MustHave(
        "prompt",
        UpTo(context.options.max_client_batch_size) + " prompts (--max-client-batch-size)",
        prompts);
  }
  if (request.logprobs.value_or(0) > kMaxTopLogprobs) {
    return MustBe("logprobs", "from 0 to " + std::to_string(kMaxTopLogprobs),
                  std::to_string(*request.logprobs));
  }
  for (const Prompt& prompt : request.prompt.list) {
    if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
      if (ids->empty()) return Invalid("prompt", "must have at least one token");
      if (auto error = CheckTokenIds("prompt", *ids, context.engine.Facts().vocabulary)) {
        return error;
      }
    } else if (std::get<std::string>(prompt).empty()) {
      return MustBe("prompt", "a string that is not empty", "\"\"");
    }
  }
  return std::nullopt;
}

}  // namespace

ApiError ModelNotFound(const ModelFacts& facts, std::string_view name,
                       const std::vector<AdapterInfo>& adapters) {
  std::string served = facts.served_name;
  for (const AdapterInfo& adapter : adapters) served += ", " + adapter.name;
  return {ApiErrorKind::kModelNotFound,
          "the model `" + std::string(json::CutUtf8(name, 200)) +
              "` does not exist. Served here: " + served,
          "model"};
}

bool IsServedModel(const ModelFacts& facts, std::string_view name) {
  // Clients that know only a URL: TGI documents "tgi", huggingface_hub sends "dummy".
  return name.empty() || name == "tgi" || name == "dummy" || name == facts.served_name ||
         name == facts.model_id;
}

std::optional<ApiError> CheckModel(const ApiContext& context, const std::string& model) {
  const ModelFacts facts = context.engine.Facts();
  if (IsServedModel(facts, model) || AdapterNamed(context.engine, model)) return std::nullopt;
  return ModelNotFound(facts, model, context.engine.Adapters());
}

std::optional<ApiError> CheckTokenIds(std::string_view field, const std::vector<TokenId>& ids,
                                      std::uint32_t vocabulary) {
  for (const TokenId id : ids) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocabulary) {
      return Invalid(field, "must have token ids from 0 to " + std::to_string(vocabulary - 1) +
                                ". Given: " + std::to_string(id));
    }
  }
  return std::nullopt;
}

std::variant<ChatInput, ApiError> LowerChatInput(const ApiContext& context,
                                                 const ChatRequest& request,
                                                 TemplateMessages messages) {
  if (request.messages.count == 0) return Invalid("messages", "must have at least one message");
  if (auto error = CheckChatTemplate(context, request)) return *std::move(error);
  const auto& kwargs = request.chat_template_kwargs;
  if (kwargs && !kwargs->text.starts_with('{')) {
    return MustBe("chat_template_kwargs", "an object", kwargs->text.substr(0, 100));
  }
  ChatInput chat;
  chat.template_source = AsString(request.chat_template);
  chat.messages_json = std::move(messages.json);
  chat.text_arguments = std::move(messages.text_arguments);
  if (!IsEmptyArray(request.tools)) chat.tools_json = request.tools->text;
  chat.kwargs_json = VariablesForTemplate(kwargs, request.reasoning_effort);
  chat.add_generation_prompt = request.add_generation_prompt;
  return chat;
}

std::uint32_t ChoicesOf(const Common& request) {
  const std::uint32_t n = request.n.value_or(1);
  return request.use_beam_search ? n : request.best_of.value_or(n);
}

bool BoundsReasoning(const ApiContext& context) {
  return OffersGrammars(context) && !context.options.answer_format->reasoning.empty();
}

Lowered LowerChat(const ApiContext& context, const ChatRequest& request, const ToolChoice& choice,
                  TemplateMessages messages, const std::string& client_id) {
  if (auto error = CheckCommon(context, request)) return *std::move(error);
  auto chat = LowerChatInput(context, request, std::move(messages));
  if (auto* error = std::get_if<ApiError>(&chat)) return std::move(*error);
  if (auto error = CheckChatFeatures(request)) return *std::move(error);
  const bool named = request.max_completion_tokens.has_value();
  const auto most = named ? request.max_completion_tokens : request.max_tokens;
  if (auto error = CheckLength(request, named ? "max_completion_tokens" : "max_tokens", most)) {
    return *std::move(error);
  }
  GenerationRequest lowered = LowerCommon(request, client_id);
  lowered.adapter_id = AdapterNamed(context.engine, request.model);
  if (auto error = AddGrammar(context, request, lowered)) return *std::move(error);
  if (auto error = AddToolGrammar(context, request, choice, lowered)) return *std::move(error);
  if (auto error = AddReasoning(context, request, choice, lowered)) return *std::move(error);
  lowered.prompt = std::get<ChatInput>(std::move(chat));
  lowered.kept_markers = answer::MarkersOf(*context.options.answer_format);
  lowered.request_class = RequestClass::kOpenAiChat;
  lowered.add_special_tokens = false;  // the template writes them
  lowered.exact_length = true;
  lowered.max_new_tokens = most;
  if (request.logprobs) {
    lowered.logprobs.kind = LogprobRequest::Kind::kRaw;
    lowered.logprobs.top_n = request.top_logprobs.value_or(0);
  }
  std::vector<GenerationRequest> all;
  AddChoices(all, lowered, request.n.value_or(1), request.stream);
  return all;
}

Lowered LowerCompletion(const ApiContext& context, const CompletionRequest& request,
                        const std::string& client_id) {
  if (auto error = CheckCommon(context, request)) return *std::move(error);
  if (auto error = CheckCompletionFeatures(context, request)) return *std::move(error);
  const std::uint32_t most = request.max_tokens.value_or(kCompletionTokens);
  if (auto error = CheckLength(request, "max_tokens", most)) return *std::move(error);
  GenerationRequest lowered = LowerCommon(request, client_id);
  lowered.adapter_id = AdapterNamed(context.engine, request.model);
  if (auto error = AddGrammar(context, request, lowered)) return *std::move(error);
  lowered.exact_length = true;
  lowered.max_new_tokens = std::max(1u, most);  // a shard always selects one token
  lowered.request_class = RequestClass::kOpenAiCompletion;
  lowered.show_prompt = request.echo;
  const std::uint32_t n = request.n.value_or(1);
  const std::uint32_t choices = ChoicesOf(request);
  if (request.logprobs || choices > n) lowered.logprobs.kind = LogprobRequest::Kind::kRaw;
  lowered.logprobs.top_n = request.logprobs.value_or(0);
  if (request.echo && request.logprobs) AskForPrompt(lowered.logprobs, *request.logprobs);
  std::vector<GenerationRequest> all;
  for (const Prompt& prompt : request.prompt.list) {
    std::visit([&](const auto& p) { lowered.prompt = p; }, prompt);
    AddChoices(all, lowered, choices, request.stream);
  }
  return all;
}

}  // namespace penstock::router::openai
