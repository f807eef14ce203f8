#include "router/api/openai/answer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "router/api/openai/dialect.h"
#include "router/api/sse.h"
#include "router/json/unicode.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

// Infinities are not JSON; clients expect a very small number in their place.
float Logprob(const std::optional<float>& logprob) {
  const float value = logprob.value_or(-9999.0f);
  return std::isfinite(value) ? std::max(value, -9999.0f) : -9999.0f;
}

void AppendChatToken(std::string& out, const TokenInfo& token) {
  const auto append = [](std::string& list, char byte) {
    json::AppendInteger(list, static_cast<unsigned>(static_cast<unsigned char>(byte)));
  };
  json::AppendMembers(out, "token", token.text, "logprob", Logprob(token.logprob), "bytes",
                      json::Array(token.text, append));
}

// {"id":…,"object":…,"created":…,"model":…,"system_fingerprint":…,"choices":[
std::string AnswerPrefix(const AnswerStyle& style, std::string_view object) {
  std::string out = "{";
  json::AppendMembers(out, "id", style.id, "object", object, "created", style.created, "model",
                      style.model, "system_fingerprint", style.fingerprint);
  return out + ",\"choices\":[";
}

std::string_view FinishReasonName(FinishReason reason) {
  const bool length = reason == FinishReason::kLength || reason == FinishReason::kCancelled;
  return length ? "length" : "stop";
}

// Token counts of all choices; a prompt with several choices counts once.
struct Usage {
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;
  std::uint64_t completion = 0;

  void Add(const AnswerStyle& style, std::size_t choice, const GenerationEnd& end) {
    completion += end.generated_tokens;
    if (choice % style.choices_per_prompt != 0) return;
    prompt += end.prompt_tokens;
    cached += end.cached_tokens;
  }
};

// "usage":{…}
void AppendUsage(std::string& out, const Usage& usage) {
  json::AppendMembers(
      out, "usage",
      json::Object("prompt_tokens", usage.prompt, "completion_tokens", usage.completion,
                   "total_tokens", usage.prompt + usage.completion, "prompt_tokens_details",
                   json::Object("cached_tokens", usage.cached), "completion_tokens_details",
                   json::Object("reasoning_tokens", 0)));
}

// Logprobs of one choice that wait to be sent. A token's entry waits as long as its text does, so
// that no part of a stop string shows in the logprobs.
class Logprobs {
 public:
  explicit Logprobs(bool chat) : chat_(chat) {}
  void Add(const GenerationToken& token);
  void Commit() { committed_ = held_; }
  void Drop() { entries_.resize(committed_), held_ = committed_; }
  // The committed entries as OpenAI's object. They are removed.
  std::string Take();

 private:
  std::string TakeChat(std::size_t count) const;
  std::string TakeCompletion(std::size_t count);

  bool chat_;
  std::vector<GenerationToken> entries_;
  std::size_t committed_ = 0;
  std::size_t held_ = 0;
  std::uint64_t text_offset_ = 0;
};

void Logprobs::Add(const GenerationToken& token) {
  if (token.token.special) return;  // its text is never shown
  entries_.push_back(token);
  held_ = entries_.size();
}

std::string Logprobs::Take() {
  const std::size_t count = committed_;
  if (count == 0) return "null";
  std::string out = chat_ ? TakeChat(count) : TakeCompletion(count);
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
  committed_ = 0;
  held_ = entries_.size();
  return out;
}

std::string Logprobs::TakeChat(std::size_t count) const {
  const auto append_top = [](std::string& out, const TokenInfo& token) {
    out += '{';
    AppendChatToken(out, token);
    out += '}';
  };
  const auto append = [&](std::string& out, const GenerationToken& entry) {
    out += '{';
    AppendChatToken(out, entry.token);
    json::AppendMembers(out, "top_logprobs", json::Array(entry.top, append_top));
    out += '}';
  };
  return json::ObjectText("content", json::Array(std::span(entries_).first(count), append),
                          "refusal", nullptr);
}

std::string Logprobs::TakeCompletion(std::size_t count) {
  const auto entries = std::span(entries_).first(count);
  const auto text = [](std::string& out, const GenerationToken& entry) {
    json::AppendString(out, entry.token.text);
  };
  const auto logprob = [](std::string& out, const GenerationToken& entry) {
    json::AppendFloat(out, Logprob(entry.token.logprob));
  };
  const auto top = [](std::string& out, const GenerationToken& entry) {
    if (entry.top.empty()) return json::Append(out, nullptr);
    out += '{';
    for (const TokenInfo& token : entry.top) {
      json::AppendComma(out);
      json::AppendString(out, token.text);
      json::AppendFloat(out += ':', Logprob(token.logprob));
    }
    out += '}';
  };
  const auto offset = [this](std::string& out, const GenerationToken& entry) {
    json::AppendInteger(out, text_offset_);
    text_offset_ += json::CountCharacters(entry.token.text);
  };
  return json::ObjectText("tokens", json::Array(entries, text), "token_logprobs",
                          json::Array(entries, logprob), "top_logprobs", json::Array(entries, top),
                          "text_offset", json::Array(entries, offset));
}

class PlainAnswer final : public AnswerWriter {
 public:
  PlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)) {
    for (std::size_t i = 0; i < style_.choices; ++i) choices_.emplace_back(style_.chat);
  }

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
    exchange_->Respond(JsonResponse(std::move(body)));
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
  const std::string suffix_;  // after the choice
  std::vector<Choice> choices_;
  Usage usage_;
  bool open_ = false;
  std::string pending_;
};

}  // namespace

AnswerStyle MakeStyle(const ApiContext& context, bool chat, const std::string& request_id) {
  AnswerStyle style;
  style.chat = chat;
  // Clients may send the same X-Request-Id twice; the number tells the answers apart.
  static std::atomic<std::uint64_t> next{0};
  style.id = (chat ? "chatcmpl-" : "cmpl-") + request_id + "-" + std::to_string(++next);
  style.model = context.engine.Facts().served_name;
  style.created = static_cast<std::int64_t>(std::time(nullptr));
  style.fingerprint = "penstock-" + context.options.version;
  return style;
}

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream) {
  if (stream) return std::make_unique<StreamAnswer>(std::move(exchange), std::move(style));
  return std::make_unique<PlainAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::openai
