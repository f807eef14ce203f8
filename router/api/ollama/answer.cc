#include "router/api/ollama/answer.h"

#include <ctime>
#include <utility>
#include <variant>
#include <vector>

#include "router/answer/arguments.h"
#include "router/api/ollama/dialect.h"
#include "router/api/utc_time.h"
#include "router/json/writer.h"

namespace penstock::router::ollama {
namespace {

// A part of an answer.
struct Part {
  std::string text;
  std::string thinking;
  std::string calls;  // elements of an array
};

std::int64_t Nanoseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

// "model":…,"created_at":…, and what the part has
void AppendPart(std::string& out, const AnswerStyle& style, const Part& part) {
  json::AppendMembers(out, "model", style.model, "created_at", UtcTime(std::time(nullptr)));
  if (style.chat) out += ",\"message\":{\"role\":\"assistant\"";
  json::AppendMembers(out, style.chat ? "content" : "response", part.text);
  if (!part.thinking.empty()) json::AppendMembers(out, "thinking", part.thinking);
  if (!part.calls.empty()) out.append(",\"tool_calls\":[").append(part.calls).append("]");
  if (style.chat) out += '}';
}

// The last object: the part, and how the answer ended.
std::string LastText(const AnswerStyle& style, const Part& part, const GenerationEnd& end) {
  std::string out = "{";
  AppendPart(out, style, part);
  const bool length = end.reason == FinishReason::kLength || end.reason == FinishReason::kCancelled;
  const RequestTimings& times = end.timings;
  const Duration prompt = times.first_token - times.validation - times.queue;
  json::AppendMembers(out, "done", true, "done_reason", length ? "length" : "stop",
                      "total_duration", Nanoseconds(times.total), "load_duration", 0,
                      "prompt_eval_count", end.prompt_tokens, "prompt_eval_duration",
                      Nanoseconds(prompt), "eval_count", end.generated_tokens, "eval_duration",
                      Nanoseconds(times.inference - prompt));
  return out + "}";
}

// Gathers the events of an answer into parts.
class Gatherer {
 public:
  explicit Gatherer(const AnswerStyle& style) : style_(style) {}

  void Add(const std::vector<answer::Event>& events, Part& part) {
    for (const answer::Event& event : events) {
      std::visit([this, &part](const auto& e) { On(e, part); }, event);
    }
  }

 private:
  void On(const answer::TextDelta& delta, Part& part) { part.text += delta.text; }
  void On(const answer::ReasoningDelta& delta, Part& part) { part.thinking += delta.text; }
  void On(const answer::CallBegin& call, Part&) {
    name_ = call.name;
    arguments_.clear();
  }
  void On(const answer::ArgumentsDelta& delta, Part&) { arguments_ += delta.json; }
  // A call is shown when it is complete, since its arguments are an object.
  void On(const answer::CallEnd& call, Part& part) {
    const std::string id =
        answer::MakeCallId(*style_.format, style_.id, name_, style_.earlier_calls + call.index);
    const std::string arguments = answer::ArgumentsObject(arguments_);
    json::AppendObject(
        part.calls, "id", id, "function",
        json::Object("index", call.index, "name", name_, "arguments", json::Raw{arguments}));
  }

  const AnswerStyle& style_;
  std::string name_;
  std::string arguments_;
};

class PlainAnswer final : public AnswerWriter {
 public:
  PlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)),
        style_(std::move(style)),
        reader_(*style_.format, style_.read) {}

  void Start(std::size_t, const GenerationStart& start) override {
    reader_.Start(start.prompt_end);
  }
  void Token(std::size_t, GenerationToken token) override {
    gatherer_.Add(reader_.Token(token.delta), part_);
  }
  void End(std::size_t, GenerationEnd end) override {
    gatherer_.Add(reader_.End(end.tail), part_);
    end_ = std::move(end);
  }
  void AllEnded(Time) override { exchange_->Respond(JsonResponse(LastText(style_, part_, end_))); }
  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const AnswerStyle style_;
  answer::Reader reader_;
  Gatherer gatherer_{style_};
  Part part_;
  GenerationEnd end_;
};

class StreamAnswer final : public AnswerWriter {
 public:
  StreamAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)),
        style_(std::move(style)),
        reader_(*style_.format, style_.read) {}

  void Start(std::size_t, const GenerationStart& start) override {
    reader_.Start(start.prompt_end);
    open_ = true;
    exchange_->StartStream({200, std::string(kLines), {{"cache-control", "no-cache"}}, ""});
  }

  void Token(std::size_t, GenerationToken token) override { Append(reader_.Token(token.delta)); }

  void End(std::size_t, GenerationEnd end) override {
    Append(reader_.End(end.tail));
    pending_ += LastText(style_, Part(), end) + "\n";
  }

  bool Flush() override {
    const bool more = exchange_->Write(pending_);
    pending_.clear();
    return more;
  }

  void AllEnded(Time) override { Finish(); }

  void Failed(const ApiError& error) override {
    if (!open_) return exchange_->Respond(Errors().Response(error));
    pending_ += Errors().Body(error) + "\n";
    Finish();
  }

 private:
  // A line has a part of one kind.
  void Append(const std::vector<answer::Event>& events) {
    for (const answer::Event& event : events) {
      Part part;
      gatherer_.Add({event}, part);
      if (part.text.empty() && part.thinking.empty() && part.calls.empty()) continue;
      std::string line = "{";
      AppendPart(line, style_, part);
      json::AppendMembers(line, "done", false);
      pending_ += line + "}\n";
    }
  }

  void Finish() {
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  const std::shared_ptr<Exchange> exchange_;
  const AnswerStyle style_;
  answer::Reader reader_;
  Gatherer gatherer_{style_};
  bool open_ = false;
  std::string pending_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream) {
  if (stream) return std::make_unique<StreamAnswer>(std::move(exchange), std::move(style));
  return std::make_unique<PlainAnswer>(std::move(exchange), std::move(style));
}

std::string LoadedText(const AnswerStyle& style) {
  std::string out = "{";
  AppendPart(out, style, Part());
  json::AppendMembers(out, "done", true, "done_reason", "load");
  return out + "}";
}

}  // namespace penstock::router::ollama
