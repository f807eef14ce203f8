#include <utility>

#include "router/api/openai/answer.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/parts.h"
#include "router/api/sse.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

class StreamAnswer final : public AnswerWriter {
 public:
  StreamAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)),
        style_(std::move(style)),
        prefix_("data: " +
                AnswerPrefix(style_, style_.chat ? "chat.completion.chunk" : "text_completion")),
        suffix_(style_.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n") {
    for (std::size_t i = 0; i < style_.choices; ++i) choices_.emplace_back(style_.chat);
  }

  void Start(std::size_t index, const GenerationStart&) override { Open(index); }

  void Token(std::size_t index, GenerationToken token) override {
    Open(index);
    Choice& choice = choices_[index];
    if (style_.logprobs) choice.logprobs.Add(token);
    if (!token.delta.empty()) {
      choice.logprobs.Commit();
      AppendText(index, token.delta);
    }
  }

  void End(std::size_t index, GenerationEnd end) override {
    Open(index);
    Choice& choice = choices_[index];
    if (end.reason == FinishReason::kStopString) {
      choice.logprobs.Drop();
    } else {
      choice.logprobs.Commit();
    }
    if (!end.tail.empty()) AppendText(index, end.tail);
    AppendFinish(index, end.reason);
    usage_.Add(style_, index, end);
  }

  bool Flush() override {
    const bool more = exchange_->Write(pending_);
    pending_.clear();
    return more;
  }

  void AllEnded(Time) override {
    if (style_.include_usage) {
      pending_.append(prefix_).append("],");
      AppendUsage(pending_, usage_);
      pending_ += "}\n\n";
    }
    pending_ += sse::kDone;
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  void Failed(const ApiError& error) override {
    if (!open_) {
      exchange_->Respond(Errors().Response(error));
      return;
    }
    sse::AppendEvent(pending_, Errors().Body(error));
    exchange_->Write(pending_);
    exchange_->Finish();
  }

 private:
  struct Choice {
    explicit Choice(bool chat) : logprobs(chat) {}
    Logprobs logprobs;
    bool begun = false;
  };

  // Writes the head of the answer, and the first chunk of a chat choice, which names the role.
  void Open(std::size_t index) {
    if (!open_) {
      open_ = true;
      HttpResponse head = sse::Head();
      head.content_type = "text/event-stream; charset=utf-8";
      exchange_->StartStream(std::move(head));
    }
    if (choices_[index].begun) return;
    choices_[index].begun = true;
    if (!style_.chat) return;
    BeginChoice(index);
    pending_ +=
        "\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
        "\"finish_reason\":null}";
    pending_ += suffix_;
  }

  void BeginChoice(std::size_t index) {
    pending_.append(prefix_).append("{\"index\":");
    json::AppendInteger(pending_, index);
    pending_ += ',';
  }

  void AppendText(std::size_t index, std::string_view text) {
    BeginChoice(index);
    pending_ += style_.chat ? "\"delta\":{\"content\":" : "\"text\":";
    json::AppendString(pending_, text);
    if (style_.chat) pending_ += '}';
    pending_.append(",\"logprobs\":").append(choices_[index].logprobs.Take());
    pending_ += ",\"finish_reason\":null}";
    pending_ += suffix_;
  }

  void AppendFinish(std::size_t index, FinishReason reason) {
    BeginChoice(index);
    pending_ += style_.chat ? "\"delta\":{}" : "\"text\":\"\"";
    pending_.append(",\"logprobs\":").append(choices_[index].logprobs.Take());
    pending_ += ",\"finish_reason\":";
    json::AppendString(pending_, FinishReasonName(reason));
    pending_ += '}';
    pending_ += suffix_;
  }

  std::shared_ptr<Exchange> exchange_;
  const AnswerStyle style_;
  const std::string prefix_;  // of every chunk, up to its choice
  const std::string suffix_;  // behind the choice
  std::vector<Choice> choices_;
  Usage usage_;
  bool open_ = false;
  std::string pending_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeStreamAnswer(std::shared_ptr<Exchange> exchange,
                                               AnswerStyle style) {
  return std::make_unique<StreamAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::openai
