#include <deque>
#include <utility>
#include <vector>

#include "router/api/sse.h"
#include "router/api/tgi/chat/chat_answer.h"
#include "router/api/tgi/dialect.h"
#include "router/api/tgi/generate/tokens.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

void AppendChoice(std::string& out, std::size_t index, std::string_view text,
                  std::string_view reason) {
  json::AppendObject(out, "index", index, "text", text, "logprobs", nullptr, "finish_reason",
                     reason);
}

class CompletionAnswer final : public AnswerWriter {
 public:
  CompletionAnswer(std::shared_ptr<Exchange> exchange, OpenAiStyle style, std::size_t prompts)
      : exchange_(std::move(exchange)), style_(std::move(style)), ends_(prompts) {}

  void End(std::size_t index, GenerationEnd end) override { ends_[index] = std::move(end); }

  void AllEnded(Time) override {
    GenerationEnd sum;
    std::string body = ChunkPrefix(style_, "text_completion");
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      const GenerationEnd& end = ends_[i];
      AppendChoice(body, i, end.text, OpenAiFinishName(end.reason));
      sum.prompt_tokens += end.prompt_tokens;
      sum.generated_tokens += end.generated_tokens;
      sum.timings.validation += end.timings.validation;
      sum.timings.queue += end.timings.queue;
      sum.timings.inference += end.timings.inference;
    }
    body += ']';
    AppendUsage(body, sum.prompt_tokens, sum.generated_tokens);
    body += '}';
    std::vector<Header> headers = AnswerHeaders(style_.common, sum);
    std::erase_if(headers, [](const Header& header) { return header.name == "x-compute-time"; });
    exchange_->Respond({200, "application/json", std::move(headers), std::move(body)});
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  std::shared_ptr<Exchange> exchange_;
  const OpenAiStyle style_;
  std::vector<GenerationEnd> ends_;
};

class CompletionStream final : public AnswerWriter {
 public:
  CompletionStream(std::shared_ptr<Exchange> exchange, OpenAiStyle style, std::size_t prompts)
      : exchange_(std::move(exchange)), style_(std::move(style)), lines_(prompts) {}

  void Start(std::size_t, const GenerationStart&) override { Open(); }

  void Token(std::size_t index, GenerationToken token) override {
    Line& line = lines_[index];
    WriteHeld(index, nullptr);
    line.held = std::move(token);
  }

  void End(std::size_t index, GenerationEnd end) override {
    WriteHeld(index, &end);
    lines_[index].ended = true;
  }

  bool Flush() override {
    for (std::size_t i = 0; i < lines_.size(); ++i) WriteHeld(i, nullptr);
    TakeTurns();
    const bool more = pending_.empty() || (Open(), exchange_->Write(pending_));
    pending_.clear();
    return more;
  }

  bool FailedAlone(std::size_t index, const ApiError& error) override {
    WriteHeld(index, nullptr);
    AppendStreamFailure(lines_[index].events.emplace_back(), error);
    lines_[index].ended = true;
    return true;
  }

  void AllEnded(Time) override {
    TakeTurns();
    Finish();
  }

  // Time is over, or the server stops.
  void Failed(const ApiError& error) override {
    AppendStreamFailure(pending_, error);
    Finish();
  }

 private:
  struct Line {
    std::deque<std::string> events;
    std::optional<GenerationToken> held;
    bool ended = false;
  };

  void Open() {
    if (open_) return;
    open_ = true;
    exchange_->StartStream(StreamHead(style_.common));
  }

  void Finish() {
    Open();
    pending_ += sse::kDone;
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  void WriteHeld(std::size_t index, const GenerationEnd* end) {
    Line& line = lines_[index];
    if (!line.held) return;
    const GenerationToken token = *std::exchange(line.held, std::nullopt);
    std::string event;
    if (end != nullptr) {
      event = ChunkPrefix(style_, "text_completion");
      AppendChoice(event, index, token.token.text, FinishReasonName(end->reason));
      event += ']';
      AppendUsage(event, end->prompt_tokens, end->generated_tokens);
      event += '}';
    } else {
      const auto choice = [&](std::string& out) {
        out += '[';
        AppendChoice(out, index, token.token.text, "");
        out += ']';
      };
      json::AppendObject(event, "object", "text_completion", "id", "", "created", style_.created,
                         "choices", choice, "model", style_.model, "system_fingerprint",
                         style_.fingerprint);
    }
    sse::AppendEvent(line.events.emplace_back(), event);
  }

  // Sends one event of each prompt in turn, until the next prompt has none yet.
  void TakeTurns() {
    std::size_t idle = 0;
    while (idle < lines_.size()) {
      Line& line = lines_[turn_];
      if (line.events.empty() && !line.ended) return;
      idle = line.events.empty() ? idle + 1 : 0;
      if (!line.events.empty()) {
        pending_ += line.events.front();
        line.events.pop_front();
      }
      turn_ = (turn_ + 1) % lines_.size();
    }
  }

  std::shared_ptr<Exchange> exchange_;
  const OpenAiStyle style_;
  std::vector<Line> lines_;
  std::size_t turn_ = 0;
  bool open_ = false;
  std::string pending_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeCompletionAnswer(std::shared_ptr<Exchange> exchange,
                                                   OpenAiStyle style, std::size_t prompts) {
  return std::make_unique<CompletionAnswer>(std::move(exchange), std::move(style), prompts);
}

std::unique_ptr<AnswerWriter> MakeCompletionStream(std::shared_ptr<Exchange> exchange,
                                                   OpenAiStyle style, std::size_t prompts) {
  return std::make_unique<CompletionStream>(std::move(exchange), std::move(style), prompts);
}

}  // namespace penstock::router::tgi
