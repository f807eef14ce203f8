#include "router/stream/text_stream.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace penstock::router {
namespace {

text::StopMatcher::Where WhereOf(const TextStreamOptions& options) {
  return options.stop_rule == StopRule::kTokenEnd ? text::StopMatcher::Where::kAtPieceEnd
                                                  : text::StopMatcher::Where::kAnywhere;
}

}  // namespace

TextStreamOptions StreamOptionsOf(const GenerationRequest& request,
                                  const std::vector<TokenId>& eos_ids) {
  TextStreamOptions options{.stop = request.stop,
                            .stop_rule = request.stop_rule,
                            .logprobs = request.logprobs.kind != LogprobRequest::Kind::kNone,
                            .decode_alone = request.decode_alone,
                            .kept_markers = request.kept_markers,
                            .end_ids = {}};
  if (request.stop_rule != StopRule::kShow) options.end_ids = request.stop_token_ids;
  if (!request.ignore_eos) {
    options.end_ids.insert(options.end_ids.end(), eos_ids.begin(), eos_ids.end());
  }
  return options;
}

absl::StatusOr<TextStream> TextStream::Create(std::shared_ptr<const text::Tokenizer> tokenizer,
                                              std::span<const TokenId> prompt,
                                              TextStreamOptions options) {
  const std::size_t size = std::min(prompt.size(), text::IncrementalDecoder::kContextTokens);
  const std::span<const TokenId> context = prompt.last(size);
  PENSTOCK_ASSIGN_OR_RETURN(auto own, text::IncrementalDecoder::Create(*tokenizer, false, context));
  // TGI decodes with the last prompt token as the only context.
  const std::size_t seen =
      options.stop_rule == StopRule::kTokenEnd ? std::min<std::size_t>(size, 1) : size;
  const bool skip_special = options.kept_markers.empty();
  PENSTOCK_ASSIGN_OR_RETURN(
      auto visible, text::IncrementalDecoder::Create(*tokenizer, skip_special, context.last(seen)));
  return TextStream(std::move(tokenizer), std::move(options), std::move(own), std::move(visible));
}

TextStream::TextStream(std::shared_ptr<const text::Tokenizer> tokenizer, TextStreamOptions options,
                       text::IncrementalDecoder own, text::IncrementalDecoder visible)
    : tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      own_(std::move(own)),
      visible_(std::move(visible)),
      matcher_(options_.stop, WhereOf(options_)) {}

absl::StatusOr<std::optional<std::uint32_t>> TextStream::Push(
    std::span<const SampledToken> tokens, std::vector<GenerationEvent>& events) {
  if (match_) return std::nullopt;
  for (const SampledToken& token : tokens) {
    GenerationEvent& event = events.emplace_back(std::in_place_type<GenerationToken>);
    if (absl::Status status = Next(token, std::get<GenerationToken>(event)); !status.ok()) {
      events.pop_back();
      return status;
    }
    if (match_) return match_->token_count;
  }
  return std::nullopt;
}

absl::Status TextStream::Next(const SampledToken& token, GenerationToken& event) {
  event.index = count_++;
  for (const TokenLogprob& alternative : token.alternatives) {
    PENSTOCK_ASSIGN_OR_RETURN(TokenInfo info, Alternative(alternative));
    event.top.push_back(std::move(info));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view own_text, own_.Push(token.token));
  event.token.id = token.token;
  event.token.text = own_text;
  event.token.special = tokenizer_->IsSpecial(token.token);
  if (options_.logprobs && !token.forced) event.token.logprob = token.logprob;
  std::string_view visible_text;
  if (IsVisible(token.token, own_text)) {
    PENSTOCK_ASSIGN_OR_RETURN(visible_text, visible_.Push(token.token));
  }
  Release(own_text, visible_text, event.delta);
  return absl::OkStatus();
}

// Before the sampled token of its step is pushed.
absl::StatusOr<TokenInfo> TextStream::Alternative(const TokenLogprob& alternative) const {
  const TokenId id = alternative.token;
  PENSTOCK_ASSIGN_OR_RETURN(std::string text, options_.decode_alone
                                                  ? tokenizer_->Decode({&id, 1}, false)
                                                  : own_.Peek(id));
  return TokenInfo{.id = id,
                   .text = std::move(text),
                   .logprob = alternative.logprob,
                   .special = tokenizer_->IsSpecial(id)};
}

void TextStream::Release(std::string_view own_text, std::string_view visible_text,
                         std::string& delta) {
  if (options_.stop.empty()) {
    text_ += visible_text;
    delta = visible_text;
    return;
  }
  pending_ += visible_text;
  std::size_t safe = pending_.size();
  if (options_.stop_rule == StopRule::kTokenEnd) {
    match_ = matcher_.Push(own_text);
  } else if (options_.stop_rule == StopRule::kShow) {
    match_ = matcher_.Push(visible_text);
    if (match_) safe = match_->end - text_.size();
  } else {
    match_ = matcher_.Push(visible_text);
    safe = match_ ? match_->begin - text_.size() : safe - matcher_.held();
  }
  delta.assign(pending_, 0, safe);
  pending_.erase(0, safe);
  text_ += delta;
}

bool TextStream::EndsGeneration(TokenId id) const {
  return std::find(options_.end_ids.begin(), options_.end_ids.end(), id) != options_.end_ids.end();
}

// The decoder skips special tokens itself if none is kept.
bool TextStream::IsVisible(TokenId id, std::string_view own_text) const {
  if (EndsGeneration(id)) return false;
  if (options_.kept_markers.empty() || !tokenizer_->IsSpecial(id)) return true;
  return !own_text.empty() &&
         std::ranges::any_of(options_.kept_markers, [own_text](const std::string& marker) {
           return marker.find(own_text) != marker.npos;
         });
}

absl::StatusOr<GenerationEnd> TextStream::Finish(FinishReason reason,
                                                 std::uint32_t generated_tokens) {
  GenerationEnd end;
  end.reason = reason;
  end.generated_tokens = generated_tokens;
  const bool ended_with_it =
      match_ && reason != FinishReason::kStopString && generated_tokens <= match_->token_count;
  if (match_ && !(options_.stop_rule == StopRule::kTokenEnd && ended_with_it)) {
    end.reason = FinishReason::kStopString;
    end.generated_tokens = match_->token_count;
    end.stop = matcher_.stop(match_->stop);
  }
  if (!match_ || options_.stop_rule == StopRule::kTokenEnd) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view rest, visible_.Finish());
    end.tail = pending_ + std::string(rest);
  }
  end.text = std::move(text_) + end.tail;
  return end;
}

absl::Status DescribePrompt(const text::Tokenizer& tokenizer, std::span<const TokenId> prompt,
                            PromptReport report, bool decode_alone, GenerationStart& start) {
  PENSTOCK_ASSIGN_OR_RETURN(auto decoder, text::IncrementalDecoder::Create(tokenizer, false, {}));
  const auto alone = [&tokenizer](TokenId id) { return tokenizer.Decode({&id, 1}, false); };
  const auto add = [&](TokenId id, std::string text, std::vector<TokenInfo>& to) {
    to.push_back({id, std::move(text), std::nullopt, tokenizer.IsSpecial(id)});
  };
  if (!report.alternatives.empty()) start.prompt_alternatives.resize(prompt.size());
  start.prompt.reserve(prompt.size());
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    if (i > 0 && i <= report.alternatives.size()) {
      GenerationStart::Alternatives& others = start.prompt_alternatives[i];
      others.rank = report.alternatives[i - 1].rank;
      for (const auto& [id, logprob] : report.alternatives[i - 1].top) {
        PENSTOCK_ASSIGN_OR_RETURN(std::string text, decode_alone ? alone(id) : decoder.Peek(id));
        add(id, std::move(text), others.top);
        others.top.back().logprob = logprob;
      }
    }
    if (decode_alone) {
      PENSTOCK_ASSIGN_OR_RETURN(std::string text, alone(prompt[i]));
      add(prompt[i], std::move(text), start.prompt);
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(const std::string_view text, decoder.Push(prompt[i]));
      add(prompt[i], std::string(text), start.prompt);
    }
    if (i > 0 && i <= report.logprobs.size()) start.prompt.back().logprob = report.logprobs[i - 1];
  }
  return absl::OkStatus();
}

}  // namespace penstock::router
