#include "tests/fuzz/targets/played_engine.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace penstock::fuzz {

using namespace router;

namespace {

constexpr std::uint32_t kPromptTokens = 3;

// The token texts of an answer; joined they are text, JSON, or a call of a tool.
using Pieces = std::vector<std::string_view>;

Pieces PiecesOf(std::uint64_t script) {
  static const std::array<Pieces, 4> kAnswers = {
      Pieces{"Hello", ",", " \xe4\xbd\xa0", "", "\xef\xbf\xbd"},
      Pieces{"{\"a\"", ":[1,2.5e3,", "null]}"},
      Pieces{"<think>", "why", "</think>", "<tool_call>\n{\"name\": \"f\", ",
             "\"arguments\": {\"x\": \"y\"}}\n", "</tool_call>"},
      Pieces{},
  };
  return kAnswers[script % kAnswers.size()];
}

TokenInfo Info(TokenId id, std::string_view text) { return {id, std::string(text), -0.5f, false}; }

GenerationStart StartOf(RequestId id, const GenerationRequest& request) {
  GenerationStart start;
  start.request = id;
  start.prompt_tokens = kPromptTokens;
  start.seed = request.seed.value_or(7);
  if (!request.show_prompt && !request.logprobs.prompt_logprobs) return start;
  for (std::uint32_t i = 0; i < kPromptTokens; ++i) {
    start.prompt.push_back(Info(static_cast<TokenId>(i), "p"));
    if (i == 0) start.prompt.back().logprob.reset();
  }
  if (const auto top = request.logprobs.prompt_top_n) {
    start.prompt_alternatives.resize(kPromptTokens);
    for (std::uint32_t i = 1; i < kPromptTokens; ++i) {
      start.prompt_alternatives[i].rank = 1;
      start.prompt_alternatives[i].top.assign(std::min(*top, 2u), Info(4, "q"));
    }
  }
  return start;
}

GenerationToken TokenOf(const GenerationRequest& request, std::uint32_t index,
                        std::string_view text) {
  GenerationToken token;
  token.index = index;
  token.token = Info(static_cast<TokenId>(index + 1), text);
  token.top.assign(std::min(request.logprobs.top_n, 2u), Info(9, "other"));
  token.delta = text;
  return token;
}

}  // namespace

RequestId PlayedEngine::Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) {
  const RequestId id(++ids_);
  open_.push_back({id, std::move(request), std::move(sink)});
  return id;
}

RequestId PlayedEngine::Search(GenerationRequest request,
                               std::vector<std::shared_ptr<GenerationSink>> sinks) {
  const RequestId first(ids_ + 1);
  for (auto& sink : sinks) Submit(request, std::move(sink));
  return first;
}

void PlayedEngine::Render(ChatInput chat, std::function<void(RenderedChat)> done) {
  later_.emplace_back(
      [text = std::move(chat.messages_json), done = std::move(done)] { done(text); });
}

void PlayedEngine::Tokenize(std::string text, TokenizeOptions options,
                            std::function<void(TokenizedText)> done) {
  std::vector<TokenSpan> spans;
  for (std::uint32_t i = 0; i < text.size(); ++i) {
    spans.push_back({static_cast<TokenId>(static_cast<unsigned char>(text[i])), i, i + 1});
    if (options.spellings) spans.back().spelling = "x";
  }
  later_.emplace_back([spans = std::move(spans), done = std::move(done)] { done(spans); });
}

void PlayedEngine::Detokenize(std::vector<TokenId> ids, std::function<void(DecodedTokens)> done) {
  later_.emplace_back(
      [size = ids.size(), done = std::move(done)] { done(std::string(size, 'x')); });
}

void PlayedEngine::Embed(EmbedJob job, std::function<void(EmbedResult)> done) {
  Embedded embedded;
  embedded.vectors.assign(job.inputs.size(),
                          std::vector<float>(facts.vectors ? facts.vectors->outputs : 0, 0.5f));
  embedded.tokens = static_cast<std::uint32_t>(job.inputs.size());
  later_.emplace_back([embedded = std::move(embedded), done = std::move(done)] { done(embedded); });
}

std::vector<GenerationEvent> PlayedEngine::Answer(const Open& open, std::uint64_t script) {
  constexpr std::uint64_t kFails = 5;
  if (script % (kFails + 1) == kFails) {
    return {GenerationError{ErrorKind::kGeneration, "the shard was lost", "", std::nullopt}};
  }
  std::vector<GenerationEvent> events;
  events.emplace_back(StartOf(open.id, open.request));
  GenerationEnd end;
  std::uint32_t index = 0;
  for (const std::string_view piece : PiecesOf(script)) {
    events.emplace_back(TokenOf(open.request, index++, piece));
    end.text += piece;
  }
  constexpr std::array kReasons = {FinishReason::kEos, FinishReason::kLength,
                                   FinishReason::kStopToken, FinishReason::kStopString};
  end.reason = kReasons[script / 7 % kReasons.size()];
  if (end.reason == FinishReason::kStopString) end.stop = "stop";
  end.generated_tokens = index;
  end.prompt_tokens = kPromptTokens;
  end.seed = open.request.seed.value_or(7);
  events.emplace_back(std::move(end));
  return events;
}

void PlayedEngine::Play(std::uint64_t script) {
  while (!open_.empty() || !later_.empty()) {
    for (const auto& done : std::exchange(later_, {})) done();
    for (Open& open : std::exchange(open_, {})) {
      // The engine writes the grammar, and refuses the request where that fails.
      if (open.request.grammar) open.request.grammar.write();
      open.sink->OnEvents(Answer(open, script));
    }
  }
}

}  // namespace penstock::fuzz
