#include "router/api/sglang/answer.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include "router/api/sglang/dialect.h"
#include "router/api/sse.h"
#include "router/json/writer.h"

namespace penstock::router::sglang {
namespace {

// [log-probability, id, text]; the text is null unless it was asked for.
void AppendEntry(std::string& out, const TokenInfo& token, std::optional<float> logprob,
                 bool texts) {
  json::AppendComma(out);
  out += '[';
  json::Append(out, logprob);
  out += ',';
  json::Append(out, token.id);
  out += ',';
  texts ? json::Append(out, token.text) : json::Append(out, nullptr);
  out += ']';
}

// The alternatives of a position, or null if it has none.
void AppendTop(std::string& out, const std::vector<TokenInfo>& top, const ResultStyle& style) {
  json::AppendComma(out);
  if (top.empty()) return json::Append(out, nullptr);
  out += '[';
  for (std::size_t i = 0; i < top.size() && i < style.top_logprobs; ++i) {
    AppendEntry(out, top[i], top[i].logprob, style.texts);
  }
  out += ']';
}

auto List(const std::string& elements) {
  return [&elements](std::string& out) { out.append("[").append(elements).append("]"); };
}

// One result while it grows. Lists of log-probabilities are kept as the text of their elements.
class Result {
 public:
  explicit Result(const ResultStyle& style) : style_(&style) {}

  void Start(const GenerationStart& start) {
    prompt_tokens_ = start.prompt_tokens;
    cached_tokens_ = start.cached_tokens;
    if (style_->logprob_start < 0) return;
    const auto first = static_cast<std::size_t>(style_->logprob_start);
    for (std::size_t i = first; i < start.prompt.size(); ++i) {
      const TokenInfo& token = start.prompt[i];
      // As SGLang's lists, these begin with a token whose log-probability is left out.
      AppendEntry(input_, token, i == first ? std::nullopt : token.logprob, style_->texts);
      const bool has_top = i > first && i < start.prompt_alternatives.size();
      AppendTop(input_top_, has_top ? start.prompt_alternatives[i].top : std::vector<TokenInfo>(),
                *style_);
    }
  }

  // A shard always selects a token, also after a prompt that is computed alone.
  void Token(const GenerationToken& token) {
    if (style_->prompt_only) return;
    text_ += token.delta;
    last_ = token.token.id;
    ++tokens_;
    json::AppendComma(ids_);
    json::Append(ids_, token.token.id);
    if (!style_->logprobs) return;
    AppendEntry(output_, token.token, token.token.logprob, style_->texts);
    AppendTop(output_top_, token.top, *style_);
  }

  void End(GenerationEnd end) {
    if (!style_->prompt_only) text_ = end.text;
    cached_tokens_ = end.cached_tokens;
    prompt_tokens_ = end.prompt_tokens;
    end_ = std::move(end);
  }

  // "text":…,"output_ids":…,"meta_info":…
  void AppendTo(std::string& out, std::string_view weight_version) const {
    json::AppendMembers(out, "text", text_, "output_ids", List(ids_), "meta_info",
                        [&](std::string& meta) { AppendMeta(meta, weight_version); });
  }

 private:
  void AppendMeta(std::string& out, std::string_view weight_version) const {
    out += '{';
    json::AppendMembers(
        out, "id", style_->id, "finish_reason", [this](std::string& text) { AppendFinish(text); },
        "prompt_tokens", prompt_tokens_, "completion_tokens", tokens_, "cached_tokens",
        cached_tokens_, "weight_version", weight_version);
    if (style_->logprobs) {
      json::AppendMembers(out, "input_token_logprobs", List(input_), "output_token_logprobs",
                          List(output_));
    }
    if (style_->logprobs && style_->top_logprobs > 0) {
      json::AppendMembers(out, "input_top_logprobs", List(input_top_), "output_top_logprobs",
                          List(output_top_));
    }
    if (end_) {
      const double seconds = std::chrono::duration<double>(end_->timings.total).count();
      json::AppendMembers(out, "e2e_latency", seconds);
    }
    out += '}';
  }

  void AppendFinish(std::string& out) const {
    if (!end_) return json::Append(out, nullptr);
    if (style_->prompt_only) return json::AppendObject(out, "type", "length", "length", 0);
    switch (end_->reason) {
      case FinishReason::kEos:
      case FinishReason::kStopToken:
        return json::AppendObject(out, "type", "stop", "matched", last_);
      case FinishReason::kStopString:
        return json::AppendObject(out, "type", "stop", "matched", end_->stop);
      case FinishReason::kLength:
        return json::AppendObject(out, "type", "length", "length", tokens_);
      case FinishReason::kCancelled:
        return json::AppendObject(out, "type", "abort", "message", "Aborted");
    }
  }

  const ResultStyle* style_;
  std::string text_;
  std::string ids_;
  std::string input_;
  std::string input_top_;
  std::string output_;
  std::string output_top_;
  TokenId last_ = 0;
  std::uint32_t tokens_ = 0;
  std::uint32_t prompt_tokens_ = 0;
  std::uint32_t cached_tokens_ = 0;
  std::optional<GenerationEnd> end_;
};

class ResultsAnswer : public AnswerWriter {
 public:
  ResultsAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)) {
    for (const ResultStyle& result : style_.results) results_.emplace_back(result);
  }

 protected:
  const std::shared_ptr<Exchange> exchange_;
  const AnswerStyle style_;
  std::vector<Result> results_;
};

class WholeAnswer final : public ResultsAnswer {
 public:
  using ResultsAnswer::ResultsAnswer;

  void Start(std::size_t index, const GenerationStart& start) override {
    results_[index].Start(start);
  }
  void Token(std::size_t index, GenerationToken token) override { results_[index].Token(token); }
  void End(std::size_t index, GenerationEnd end) override { results_[index].End(std::move(end)); }

  void AllEnded(Time) override {
    std::string body = style_.listed ? "[" : "";
    for (const Result& result : results_) {
      json::AppendComma(body);
      body += '{';
      result.AppendTo(body, style_.weight_version);
      body += '}';
    }
    if (style_.listed) body += ']';
    exchange_->Respond(JsonResponse(std::move(body)));
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }
};

// An event for each result that has news, with all that it has so far.
class EventAnswer final : public ResultsAnswer {
 public:
  EventAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : ResultsAnswer(std::move(exchange), std::move(style)), news_(results_.size()) {}

  void Start(std::size_t index, const GenerationStart& start) override {
    results_[index].Start(start);
    if (std::exchange(open_, true)) return;
    exchange_->StartStream(sse::Head());
  }
  void Token(std::size_t index, GenerationToken token) override {
    results_[index].Token(token);
    if (!style_.results[index].prompt_only) news_[index] = true;
  }
  void End(std::size_t index, GenerationEnd end) override {
    results_[index].End(std::move(end));
    news_[index] = true;
  }

  bool Flush() override {
    AppendNews();
    const bool more = exchange_->Write(pending_);
    pending_.clear();
    return more;
  }

  void AllEnded(Time) override {
    AppendNews();
    Finish();
  }

  void Failed(const ApiError& error) override {
    if (!open_) return exchange_->Respond(Errors().Response(error));
    sse::AppendEvent(pending_, Errors().Body(error));
    Finish();
  }

 private:
  void AppendNews() {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!std::exchange(news_[i], false)) continue;
      pending_ += "data: {";
      results_[i].AppendTo(pending_, style_.weight_version);
      if (style_.listed) json::AppendMembers(pending_, "index", i);
      pending_ += "}\n\n";
    }
  }

  void Finish() {
    pending_ += sse::kDone;
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  bool open_ = false;
  std::deque<bool> news_;  // by result
  std::string pending_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream) {
  if (stream) return std::make_unique<EventAnswer>(std::move(exchange), std::move(style));
  return std::make_unique<WholeAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::sglang
