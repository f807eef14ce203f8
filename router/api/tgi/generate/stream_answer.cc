#include <optional>
#include <utility>

#include "router/api/sse.h"
#include "router/api/tgi/errors.h"
#include "router/api/tgi/generate/answer.h"
#include "router/api/tgi/generate/tokens.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

// TGI's last event carries the last token and the end together, so a token waits for what follows
// it in its batch of events. The engine delivers the end in the batch of the last token.
class StreamAnswer final : public AnswerWriter {
 public:
  StreamAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)) {}

  void Start(std::size_t, const GenerationStart&) override { Open(); }

  void Token(std::size_t, GenerationToken token) override {
    Open();
    WriteHeld(nullptr);
    held_ = std::move(token);
  }

  void End(std::size_t, GenerationEnd end) override {
    Open();
    // The event of an end needs a token even if none is left: an empty one after the last.
    if (!held_) {
      held_.emplace();
      held_->index = next_index_;
      held_->token.special = true;
    }
    WriteHeld(&end);
  }

  bool Flush() override {
    WriteHeld(nullptr);
    const bool more = exchange_->Write(pending_);
    pending_.clear();
    return more;
  }

  void AllEnded(Time) override {
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  void Failed(const ApiError& error) override {
    if (!open_) {
      StreamError(*exchange_, style_, error);
      return;
    }
    WriteHeld(nullptr);
    sse::AppendEvent(pending_, Errors().Body(error));
    exchange_->Write(pending_);
    exchange_->Finish();
  }

 private:
  void Open() {
    if (open_) return;
    open_ = true;
    exchange_->StartStream(StreamHead(style_));
  }

  void WriteHeld(const GenerationEnd* end) {
    if (!held_) return;
    next_index_ = held_->index + 1;
    pending_ += "data: {\"index\":";
    json::AppendInteger(pending_, held_->index + 1);
    pending_ += ",\"token\":";
    AppendToken(pending_, held_->token);
    if (!held_->top.empty()) {
      pending_ += ",\"top_tokens\":";
      AppendTokens(pending_, held_->top);
    }
    held_.reset();
    if (end == nullptr) {
      pending_ += ",\"generated_text\":null,\"details\":null}\n\n";
      return;
    }
    pending_ += ",\"generated_text\":";
    json::AppendString(pending_, style_.prefix + end->text);
    pending_ += ",\"details\":";
    if (style_.details) {
      AppendDetails(*end);
    } else {
      pending_ += "null";
    }
    pending_ += "}\n\n";
  }

  void AppendDetails(const GenerationEnd& end) {
    pending_ += "{\"finish_reason\":";
    json::AppendString(pending_, FinishReasonName(end.reason));
    pending_ += ",\"generated_tokens\":";
    json::AppendInteger(pending_, end.generated_tokens);
    pending_ += ",\"seed\":";
    AppendSeed(pending_, end);
    pending_ += ",\"input_length\":";
    json::AppendInteger(pending_, end.prompt_tokens);
    pending_ += '}';
  }

  std::shared_ptr<Exchange> exchange_;
  AnswerStyle style_;
  bool open_ = false;
  std::optional<GenerationToken> held_;
  std::uint32_t next_index_ = 0;
  std::string pending_;
};

}  // namespace

HttpResponse StreamHead(const AnswerStyle& style) {
  HttpResponse head = sse::Head();
  head.headers.push_back({"x-compute-type", style.compute_type});
  head.headers.push_back({"x-compute-characters", std::to_string(style.characters)});
  return head;
}

std::unique_ptr<AnswerWriter> MakeStreamAnswer(std::shared_ptr<Exchange> exchange,
                                               AnswerStyle style) {
  return std::make_unique<StreamAnswer>(std::move(exchange), std::move(style));
}

void StreamError(Exchange& exchange, const AnswerStyle& style, const ApiError& error) {
  exchange.StartStream(StreamHead(style));
  std::string event;
  sse::AppendEvent(event, Errors().Body(error));
  exchange.Write(event);
  exchange.Finish();
}

}  // namespace penstock::router::tgi
