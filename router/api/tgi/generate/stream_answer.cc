#include <optional>
#include <utility>

#include "router/api/sse.h"
#include "router/api/tgi/dialect.h"
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
    pending_ += "data: {";
    json::AppendMembers(pending_, "index", held_->index + 1, "token",
                        [&](std::string& out) { AppendToken(out, held_->token); });
    if (!held_->top.empty()) {
      json::AppendMembers(pending_, "top_tokens", json::Array(held_->top, AppendToken));
    }
    held_.reset();
    if (end == nullptr) {
      pending_ += ",\"generated_text\":null,\"details\":null}\n\n";
      return;
    }
    json::AppendMembers(pending_, "generated_text", style_.prefix + end->text);
    const auto details = json::Object("finish_reason", FinishReasonName(end->reason),
                                      "generated_tokens", end->generated_tokens, "seed",
                                      SeedOf(*end), "input_length", end->prompt_tokens);
    style_.details ? json::AppendMembers(pending_, "details", details)
                   : json::AppendMembers(pending_, "details", nullptr);
    pending_ += "}\n\n";
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
