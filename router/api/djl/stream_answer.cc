#include <optional>
#include <utility>

#include "router/api/djl/answer.h"
#include "router/api/djl/dialect.h"
#include "router/api/sse.h"
#include "router/json/writer.h"

namespace penstock::router::djl {
namespace {

// One object per token, as a line or an event; the last of an input carries its whole text. So a
// token waits until the next event of its batch is known. The status is sent with the first token,
// so an error before it has its own status. With a list of inputs each object names its input.
class StreamAnswer final : public AnswerWriter {
 public:
  StreamAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)), held_(style_.inputs.size()) {}

  void Start(std::size_t, const GenerationStart&) override {}

  void Token(std::size_t index, GenerationToken token) override {
    WriteHeld(index, nullptr);
    // The text that may be shown. It differs from the token's own text while a stop string is
    // possible.
    token.token.text = token.delta;
    held_[index] = std::move(token);
  }

  void End(std::size_t index, GenerationEnd end) override {
    if (!held_[index]) {
      held_[index].emplace();
      held_[index]->token.id = -1;
      held_[index]->token.special = true;
    }
    held_[index]->token.text += end.tail;
    WriteHeld(index, &end);
  }

  bool Flush() override {
    for (std::size_t i = 0; i < held_.size(); ++i) WriteHeld(i, nullptr);
    if (!open_) return true;
    const bool more = exchange_->Write(pending_);
    pending_.clear();
    return more;
  }

  void AllEnded(Time) override {
    Open();
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  void Failed(const ApiError& error) override {
    if (!open_) return exchange_->Respond(Errors().Response(error));
    for (std::size_t i = 0; i < held_.size(); ++i) WriteHeld(i, nullptr);
    WriteError(0, error);
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  bool FailedAlone(std::size_t index, const ApiError& error) override {
    if (!FailsAlone(style_, error)) return false;
    WriteError(index, error);
    return true;
  }

 private:
  void Open() {
    if (std::exchange(open_, true)) return;
    HttpResponse head = sse::Head();
    if (style_.formatter == Formatter::kJsonLines) head.content_type = "application/jsonlines";
    exchange_->StartStream(std::move(head));
  }

  void Put(std::size_t index, std::string_view members) {
    Open();
    std::string object = "{";
    if (style_.list) json::AppendMembers(object, "index", index);
    json::AppendComma(object);
    object.append(members).append("}");
    if (style_.formatter == Formatter::kSse) {
      sse::AppendEvent(pending_, object);
    } else {
      pending_.append(object).append("\n");
    }
  }

  void WriteHeld(std::size_t index, const GenerationEnd* end) {
    if (!held_[index]) return;
    const GenerationToken token = *std::exchange(held_[index], std::nullopt);
    std::string members = "\"token\":";
    AppendToken(members, style_, token.token);
    if (!token.top.empty()) {
      members += ",\"top_tokens\":[";
      AppendTokens(members, style_, token.top);
      members += ']';
    }
    if (end != nullptr) {
      json::AppendMembers(members, "generated_text", FullText(style_, index, end->text));
      if (style_.details) {
        members += ",\"details\":{";
        AppendDetails(members, style_, index, *end);
        members += '}';
      }
    }
    Put(index, members);
  }

  void WriteError(std::size_t index, const ApiError& error) {
    std::string members;
    json::AppendMembers(members, "token",
                        json::Object("id", -1, "text", "", "log_prob", nullptr, "special_token",
                                     true, "error_msg", error.message),
                        "generated_text", nullptr, "code", Errors().Status(error.kind), "error",
                        error.message, "details", json::Object("finish_reason", "error"));
    Put(index, members);
  }

  std::shared_ptr<Exchange> exchange_;
  AnswerStyle style_;
  bool open_ = false;
  std::vector<std::optional<GenerationToken>> held_;  // of each input
  std::string pending_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeStreamAnswer(std::shared_ptr<Exchange> exchange,
                                               AnswerStyle style) {
  return std::make_unique<StreamAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::djl
