#include "shard/tgi/member.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/status.h"
#include "generate/v3/generate.pb.h"

namespace penstock::shard {
namespace {

namespace v3 = generate::v3;

absl::Status AddToken(TokenId id, float logprob, const text::Tokenizer& tokenizer,
                      v3::Tokens& out) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string text, tokenizer.Decode({&id, 1}, false));
  out.add_ids(static_cast<std::uint32_t>(id));
  out.add_logprobs(logprob);
  out.add_texts(std::move(text));
  return absl::OkStatus();
}

// The first prompt token has no logprob, so it gets NaN.
absl::Status AddPrompt(const Member& member, const text::Tokenizer& tokenizer, v3::Tokens& out) {
  const std::vector<TokenId>& prompt = member.request.start.prompt;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const bool known = i > 0 && i <= member.prompt_logprobs.size();
    const float logprob =
        known ? member.prompt_logprobs[i - 1] : std::numeric_limits<float>::quiet_NaN();
    PENSTOCK_RETURN_IF_ERROR(AddToken(prompt[i], logprob, tokenizer, out));
  }
  return absl::OkStatus();
}

absl::Status AddTop(const SampledToken& token, const text::Tokenizer& tokenizer, v3::Tokens& out) {
  for (const TokenLogprob& top : token.alternatives) {
    PENSTOCK_RETURN_IF_ERROR(AddToken(top.token, top.logprob, tokenizer, out));
    out.add_is_special(tokenizer.IsSpecial(top.token));
  }
  return absl::OkStatus();
}

bool HasEnded(const Member& member) {
  return member.finish != ShardFinish::kNone || member.text.stopped();
}

v3::FinishReason ReasonOf(const Member& member) {
  if (member.finish == ShardFinish::kLength) return v3::FINISH_REASON_LENGTH;
  if (member.finish == ShardFinish::kEos) return v3::FINISH_REASON_EOS_TOKEN;
  return v3::FINISH_REASON_STOP_SEQUENCE;
}

absl::Status AddEnd(Member& member, v3::GeneratedText& out) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string text, member.text.Finish());
  out.set_text(std::move(text));
  out.set_generated_tokens(member.generated);
  out.set_finish_reason(ReasonOf(member));
  const SamplingParams& sampling = member.request.start.sampling;
  if (sampling.do_sample) out.set_seed(sampling.seed);
  return absl::OkStatus();
}

}  // namespace

void Member::StartAgain(SequenceId id) {
  SequenceStart& start = request.start;
  sequence = id;
  started = false;
  restarts = true;
  computed = 0;
  start.prompt = std::exchange(tokens, {});
  start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
  start.sample_index_base = generated;
  start.max_new_tokens -= generated;
  start.logprobs.prompt_logprobs = false;
}

absl::Status TakeToken(Member& member, const text::Tokenizer& tokenizer, v3::Generation* out) {
  const SampledToken& token = *member.sampled;
  ++member.generated;
  PENSTOCK_ASSIGN_OR_RETURN(std::string piece,
                            member.text.Push(token.token, member.finish == ShardFinish::kEos));
  member.stopped = HasEnded(member);
  if (out == nullptr) return absl::OkStatus();
  const LogprobRequest& asked = member.request.start.logprobs;
  out->set_request_id(member.request.id);
  if (member.generated == 1 && asked.prompt_logprobs) {
    PENSTOCK_RETURN_IF_ERROR(AddPrompt(member, tokenizer, *out->mutable_prefill_tokens()));
  }
  v3::Tokens& tokens = *out->mutable_tokens();
  tokens.add_ids(static_cast<std::uint32_t>(token.token));
  tokens.add_logprobs(token.logprob);
  tokens.add_texts(std::move(piece));
  tokens.add_is_special(tokenizer.IsSpecial(token.token));
  if (asked.top_n > 0) PENSTOCK_RETURN_IF_ERROR(AddTop(token, tokenizer, *out->add_top_tokens()));
  return member.stopped ? AddEnd(member, *out->mutable_generated_text()) : absl::OkStatus();
}

absl::StatusOr<RequestText> RequestText::Create(const text::Tokenizer& tokenizer,
                                                std::span<const TokenId> prompt,
                                                std::vector<std::string> stops) {
  using text::IncrementalDecoder;
  const auto context = prompt.last(std::min(prompt.size(), IncrementalDecoder::kContextTokens));
  PENSTOCK_ASSIGN_OR_RETURN(auto own, IncrementalDecoder::Create(tokenizer, false, context));
  // As in TGI, only the last token of the prompt precedes the text.
  PENSTOCK_ASSIGN_OR_RETURN(auto whole,
                            IncrementalDecoder::Create(tokenizer, true, prompt.last(1)));
  text::StopMatcher matcher(std::move(stops), text::StopMatcher::Where::kAtPieceEnd);
  return RequestText(std::move(own), std::move(whole), std::move(matcher));
}

RequestText::RequestText(text::IncrementalDecoder own, text::IncrementalDecoder whole,
                         text::StopMatcher matcher)
    : own_(std::move(own)), whole_(std::move(whole)), matcher_(std::move(matcher)) {}

absl::StatusOr<std::string> RequestText::Push(TokenId token, bool is_end) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view own, own_.Push(token));
  std::string piece(own);
  stopped_ = matcher_.Push(piece).has_value();
  if (is_end) return piece;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view visible, whole_.Push(token));
  text_ += visible;
  return piece;
}

absl::StatusOr<std::string> RequestText::Finish() {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view rest, whole_.Finish());
  text_ += rest;
  return std::move(text_);
}

}  // namespace penstock::shard
