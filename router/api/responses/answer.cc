#include "router/api/responses/answer.h"

#include <ctime>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/openai/logprobs.h"
#include "router/api/sse.h"

namespace penstock::router::responses {
namespace {

// OpenAI's closed set of codes.
std::string_view ErrorCode(const ErrorFormat& errors, ApiErrorKind kind) {
  if (kind == ApiErrorKind::kOverloaded) return "rate_limit_exceeded";
  return errors.Status(kind) < 500 ? "invalid_prompt" : "server_error";
}

bool IsCut(const GenerationEnd& end) {
  return end.reason == FinishReason::kLength || end.reason == FinishReason::kCancelled;
}

class Answer final : public AnswerWriter {
 public:
  Answer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)),
        style_(std::move(style)),
        output_(style_.output),
        reader_(*style_.output.format, style_.read),
        logprobs_(true, false) {}

  void OfferCancel(std::function<void()> cancel) override { cancel_ = std::move(cancel); }

  void Start(std::size_t, const GenerationStart& start) override {
    reader_.Start(start.prompt_end);
    begun_ = true;
    const std::string object = ResponseText(style_.facts, {});
    if (style_.store != nullptr) {
      style_.store->Add(style_.tenant, {style_.facts.id, style_.input, object, cancel_});
    }
    if (!style_.output.stream) return;
    HttpResponse head = sse::Head();
    head.content_type = "text/event-stream; charset=utf-8";
    exchange_->StartStream(std::move(head));
    output_.Emit("response.created", "response", json::Raw{object});
    output_.Emit("response.in_progress", "response", json::Raw{object});
  }

  void Token(std::size_t, GenerationToken token) override {
    if (style_.logprobs) logprobs_.Add(token);
    if (!token.delta.empty()) logprobs_.Commit();
    AddEvents(reader_.Token(token.delta));
  }

  void End(std::size_t, GenerationEnd end) override {
    if (end.reason == FinishReason::kStopString) {
      logprobs_.Drop();
    } else {
      logprobs_.Commit();
    }
    std::vector<answer::Event> last = reader_.End(end.tail);
    // The reader ends a call that was cut, too. It stays open here, so that it ends as incomplete.
    if (IsCut(end) && !last.empty() && std::holds_alternative<answer::CallEnd>(last.back())) {
      last.pop_back();
    }
    AddEvents(last);
    end_ = std::move(end);
  }

  bool Flush() override { return !style_.output.stream || exchange_->Write(output_.TakeEvents()); }

  void AllEnded(Time) override {
    const bool cut = IsCut(end_);
    ResponseState state;
    state.status = cut ? "incomplete" : "completed";
    state.usage = Usage{end_.prompt_tokens, end_.cached_tokens, end_.generated_tokens,
                        reader_.reasoning_tokens()};
    if (!cut) state.completed = static_cast<std::int64_t>(std::time(nullptr));
    Finish(cut ? "response.incomplete" : "response.completed", std::move(state));
  }

  void Cancelled() override {
    ResponseState state;
    state.status = "cancelled";
    Finish("response.incomplete", std::move(state));
  }

  void Abandoned() override {
    if (begun_) Keep({.status = "cancelled"});
  }

  void Failed(const ApiError& error) override {
    ResponseState state;
    state.status = "failed";
    const std::string_view code = ErrorCode(*style_.errors, error.kind);
    state.error = json::ObjectText("code", code, "message", error.message);
    if (!begun_ || !style_.output.stream) {
      Keep(std::move(state));
      return exchange_->Respond(style_.errors->Response(error));
    }
    output_.Close("incomplete");
    output_.Emit("error", "code", code, "message", error.message, "param",
                 error.field.empty() ? std::optional<std::string_view>() : error.field);
    Finish("response.failed", std::move(state));
  }

 private:
  // Log-probabilities are shown with texts, not with reasoning and calls.
  void AddEvents(const std::vector<answer::Event>& events) {
    for (const answer::Event& event : events) {
      const auto* text = std::get_if<answer::TextDelta>(&event);
      const std::size_t bytes = text == nullptr ? 0 : text->text.size();
      output_.Add(event, style_.logprobs ? logprobs_.TakeList(bytes) : "[]");
    }
  }

  // The response in its last state, also in the store.
  std::string Keep(ResponseState state) {
    output_.Close(state.status == "completed" ? "completed" : "incomplete");
    state.output = ItemsText(output_.items());
    std::string object = ResponseText(style_.facts, state);
    if (style_.store != nullptr) style_.store->Finish(style_.tenant, style_.facts.id, object);
    return object;
  }

  void Finish(std::string_view event, ResponseState state) {
    std::string object = Keep(std::move(state));
    if (!style_.output.stream) return exchange_->Respond(JsonResponse(std::move(object)));
    output_.Emit(event, "response", json::Raw{object});
    exchange_->Write(output_.TakeEvents());
    exchange_->Finish();
  }

  std::shared_ptr<Exchange> exchange_;
  const AnswerStyle style_;
  Output output_;
  answer::Reader reader_;
  openai::Logprobs logprobs_;
  GenerationEnd end_;
  std::function<void()> cancel_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style) {
  return std::make_unique<Answer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::responses
