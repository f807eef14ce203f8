#include <utility>

#include "router/api/tgi/dialect.h"
#include "router/api/tgi/generate/answer.h"
#include "router/api/tgi/generate/tokens.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

struct Candidate {
  std::string prefill;     // elements of details.prefill
  std::string tokens;      // elements of details.tokens
  std::string top_tokens;  // elements of details.top_tokens, one for each token
  bool has_top = false;    // one of them is not empty: a forced token has none
  std::size_t count = 0;
  double logprob = 0;  // sum
  GenerationEnd end;
};

// Milliseconds as TGI's timing headers show them.
std::string Milliseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

class PlainAnswer final : public AnswerWriter {
 public:
  PlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style, std::size_t candidates)
      : exchange_(std::move(exchange)), style_(std::move(style)), candidates_(candidates) {}

  void Start(std::size_t index, const GenerationStart& start) override {
    if (!style_.prefill) return;
    std::string& prefill = candidates_[index].prefill;
    for (const TokenInfo& token : start.prompt) AppendPrefillToken(prefill, token);
  }

  void Token(std::size_t index, GenerationToken token) override {
    Candidate& candidate = candidates_[index];
    candidate.logprob += token.token.logprob.value_or(0.0f);
    ++candidate.count;
    if (!style_.details) return;
    AppendToken(candidate.tokens, token.token);
    candidate.has_top = candidate.has_top || !token.top.empty();
    json::AppendComma(candidate.top_tokens);
    AppendTokens(candidate.top_tokens, token.top);
  }

  void End(std::size_t index, GenerationEnd end) override {
    candidates_[index].end = std::move(end);
  }

  void AllEnded(Time) override {
    // best_of: the highest mean logprob wins, the first of equals.
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates_.size(); ++i) {
      if (Mean(candidates_[i]) > Mean(candidates_[best])) best = i;
    }
    HttpResponse response{200, "application/json", AnswerHeaders(style_, candidates_[best].end),
                          ""};
    std::string& body = response.body;
    body = style_.in_array ? "[{" : "{";
    json::AppendMembers(body, "generated_text", style_.prefix + candidates_[best].end.text);
    if (style_.details) AppendDetails(body, best);
    body += style_.in_array ? "}]" : "}";
    exchange_->Respond(std::move(response));
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  static double Mean(const Candidate& candidate) {
    return candidate.count == 0 ? 0 : candidate.logprob / static_cast<double>(candidate.count);
  }

  void AppendDetails(std::string& body, std::size_t best) const {
    body += ",\"details\":{";
    AppendSequence(body, candidates_[best]);
    if (candidates_.size() > 1) {
      body += ",\"best_of_sequences\":[";
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (i == best) continue;
        json::AppendComma(body);
        body += '{';
        json::AppendMembers(body, "generated_text", style_.prefix + candidates_[i].end.text);
        AppendSequence(body, candidates_[i]);
        AppendTop(body, candidates_[i]);
        body += '}';
      }
      body += ']';
    }
    AppendTop(body, candidates_[best]);
    body += '}';
  }

  static void AppendSequence(std::string& body, const Candidate& candidate) {
    json::AppendMembers(body, "finish_reason", FinishReasonName(candidate.end.reason),
                        "generated_tokens", candidate.end.generated_tokens, "seed",
                        SeedOf(candidate.end));
    body.append(",\"prefill\":[").append(candidate.prefill);
    body.append("],\"tokens\":[").append(candidate.tokens).append("]");
  }

  static void AppendTop(std::string& body, const Candidate& candidate) {
    if (!candidate.has_top) return;
    body.append(",\"top_tokens\":[").append(candidate.top_tokens).append("]");
  }

  std::shared_ptr<Exchange> exchange_;
  AnswerStyle style_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<Header> AnswerHeaders(const AnswerStyle& style, const GenerationEnd& end) {
  const RequestTimings& t = end.timings;
  const Duration total = SteadyNow() - style.arrived;
  const Duration per_token = t.inference / std::max<std::uint32_t>(1, end.generated_tokens);
  const double seconds = std::chrono::duration<double>(total).count();
  return {{"x-compute-type", style.compute_type},
          {"x-compute-time", std::to_string(seconds)},
          {"x-compute-characters", std::to_string(style.characters)},
          {"x-total-time", Milliseconds(total)},
          {"x-validation-time", Milliseconds(t.validation)},
          {"x-queue-time", Milliseconds(t.queue)},
          {"x-inference-time", Milliseconds(t.inference)},
          {"x-time-per-token", Milliseconds(per_token)},
          {"x-prompt-tokens", std::to_string(end.prompt_tokens)},
          {"x-generated-tokens", std::to_string(end.generated_tokens)}};
}

std::unique_ptr<AnswerWriter> MakePlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                              std::size_t candidates) {
  return std::make_unique<PlainAnswer>(std::move(exchange), std::move(style), candidates);
}

}  // namespace penstock::router::tgi
