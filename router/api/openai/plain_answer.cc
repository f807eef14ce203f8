#include <utility>

#include "router/api/openai/answer.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/parts.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

class PlainAnswer final : public AnswerWriter {
 public:
  PlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)) {
    for (std::size_t i = 0; i < style_.choices; ++i) choices_.emplace_back(style_.chat);
  }

  void Start(std::size_t, const GenerationStart&) override {}

  void Token(std::size_t index, GenerationToken token) override {
    if (!style_.logprobs) return;
    Logprobs& logprobs = choices_[index].logprobs;
    const bool shown = !token.delta.empty();
    logprobs.Add(token);
    if (shown) logprobs.Commit();
  }

  void End(std::size_t index, GenerationEnd end) override {
    Logprobs& logprobs = choices_[index].logprobs;
    if (end.reason == FinishReason::kStopString) {
      logprobs.Drop();
    } else {
      logprobs.Commit();
    }
    choices_[index].end = std::move(end);
  }

  void AllEnded(Time) override {
    std::string body = AnswerPrefix(style_, style_.chat ? "chat.completion" : "text_completion");
    Usage usage;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      AppendChoice(body, i);
      usage.Add(style_, i, choices_[i].end);
    }
    body += ']';
    AppendUsage(body, usage);
    body += '}';
    exchange_->Respond({200, "application/json", {}, std::move(body)});
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  struct Choice {
    explicit Choice(bool chat) : logprobs(chat) {}
    Logprobs logprobs;
    GenerationEnd end;
  };

  void AppendChoice(std::string& body, std::size_t index) {
    Choice& choice = choices_[index];
    json::AppendComma(body);
    body += '{';
    json::AppendMembers(body, "index", index);
    if (style_.chat) {
      json::AppendMembers(
          body, "message",
          json::Object("role", "assistant", "content", choice.end.text, "refusal", nullptr));
    } else {
      json::AppendMembers(body, "text", choice.end.text);
    }
    json::AppendMembers(body, "logprobs", json::Raw{choice.logprobs.Take()}, "finish_reason",
                        FinishReasonName(choice.end.reason));
    body += '}';
  }

  std::shared_ptr<Exchange> exchange_;
  AnswerStyle style_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakePlainAnswer(std::shared_ptr<Exchange> exchange,
                                              AnswerStyle style) {
  return std::make_unique<PlainAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::openai
