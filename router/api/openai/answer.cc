#include "router/api/openai/answer.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "router/answer/reader.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/logprobs.h"
#include "router/api/sse.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

// {"id":…,"object":…,"created":…,"model":…,"system_fingerprint":…,"choices":[
std::string AnswerPrefix(const AnswerStyle& style, std::string_view object) {
  std::string out = "{";
  json::AppendMembers(out, "id", style.id, "object", object, "created", style.created, "model",
                      style.model, "system_fingerprint", style.fingerprint);
  return out + ",\"choices\":[";
}

// `calls`: the answer has calls, and none was demanded by name.
std::string_view FinishReasonName(FinishReason reason, bool calls) {
  const bool length = reason == FinishReason::kLength || reason == FinishReason::kCancelled;
  if (length) return "length";
  return calls ? "tool_calls" : "stop";
}

// The id of a call. Ids of different choices differ, too.
std::string CallId(const AnswerStyle& style, std::size_t choice, std::size_t call,
                   std::string_view tool) {
  const std::string answer = style.id + "/" + std::to_string(choice);
  return answer::MakeCallId(*style.format, answer, tool, style.earlier_calls + call);
}

// Token counts of all choices; a prompt with several choices counts once.
struct Usage {
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;
  std::uint64_t completion = 0;
  std::uint64_t reasoning = 0;

  void Add(const AnswerStyle& style, std::size_t choice, const GenerationEnd& end,
           const answer::Reader& reader) {
    completion += end.generated_tokens;
    reasoning += reader.reasoning_tokens();
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
                   json::Object("reasoning_tokens", usage.reasoning)));
}

// The token that a shard always selects is not part of an answer with max_tokens 0.
void EndAtPrompt(GenerationEnd& end) {
  end.reason = FinishReason::kLength;
  end.generated_tokens = 0;
  end.tail.clear();
}

// What one choice of a completion says about its prompt.
std::string EchoedText(const AnswerStyle& style, std::size_t choice, const GenerationStart& start) {
  const std::string& text = style.prompts[choice / style.choices_per_prompt];
  if (!text.empty()) return text;
  std::string joined;  // the prompt was given as tokens
  for (const TokenInfo& token : start.prompt) {
    if (!token.special) joined += token.text;
  }
  return joined;
}

// A choice's tokens for `best_of`, which returns the choices with the largest mean.
struct MeanLogprob {
  double sum = 0;
  std::uint32_t tokens = 0;

  void Add(const TokenInfo& token) { sum += token.logprob.value_or(0), ++tokens; }
  double Value() const { return tokens == 0 ? 0 : sum / tokens; }
};

class PlainAnswer final : public AnswerWriter {
 public:
  PlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)) {
    for (std::size_t i = 0; i < style_.choices; ++i) choices_.emplace_back(style_);
  }

  void Start(std::size_t index, const GenerationStart& start) override {
    Choice& choice = choices_[index];
    choice.reader.Start(start.prompt_end);
    // Only the first choice of a prompt has its tokens.
    if (style_.ShowsPrompt() && index % style_.choices_per_prompt == 0) choice.start = start;
  }

  void Token(std::size_t index, GenerationToken token) override {
    if (style_.prompt_only) return;
    Choice& choice = choices_[index];
    choice.Add(choice.reader.Token(token.delta));
    choice.mean.Add(token.token);
    if (!style_.logprobs) return;
    choice.logprobs.Add(token);
    if (!token.delta.empty()) choice.logprobs.Commit();
  }

  void End(std::size_t index, GenerationEnd end) override {
    Choice& choice = choices_[index];
    if (end.reason == FinishReason::kStopString) {
      choice.logprobs.Drop();
    } else {
      choice.logprobs.Commit();
    }
    if (style_.prompt_only) EndAtPrompt(end);
    choice.Add(choice.reader.End(end.tail));
    choice.end = std::move(end);
  }

  void AllEnded(Time) override {
    std::string body = AnswerPrefix(style_, style_.chat ? "chat.completion" : "text_completion");
    Usage usage;
    std::size_t place = 0;
    for (const std::size_t choice : Order()) AppendChoice(body, choice, place++);
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      usage.Add(style_, i, choices_[i].end, choices_[i].reader);
    }
    body += ']';
    AppendUsage(body, usage);
    if (style_.chat && style_.prompt_logprobs) AppendPromptLogprobs(body, 0);
    body += '}';
    exchange_->Respond(JsonResponse(std::move(body)));
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  struct Choice {
    explicit Choice(const AnswerStyle& style)
        : logprobs(style.chat, style.echo), reader(*style.format, style.read) {}

    void Add(const std::vector<answer::Event>& events) {
      for (const answer::Event& event : events) answer.Add(event);
    }

    Logprobs logprobs;
    answer::Reader reader;
    answer::Answer answer;
    MeanLogprob mean;
    GenerationStart start;
    GenerationEnd end;
  };

  // The choices of the answer. With best_of they are the best ones of each prompt, best first.
  std::vector<std::size_t> Order() const {
    std::vector<std::size_t> order(choices_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (style_.returned_per_prompt == style_.choices_per_prompt) return order;
    std::vector<std::size_t> best;
    for (std::size_t i = 0; i < order.size(); i += style_.choices_per_prompt) {
      const auto first = order.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = first + static_cast<std::ptrdiff_t>(style_.choices_per_prompt);
      std::stable_sort(first, last, [this](std::size_t a, std::size_t b) {
        return choices_[a].mean.Value() > choices_[b].mean.Value();
      });
      best.insert(best.end(), first,
                  first + static_cast<std::ptrdiff_t>(style_.returned_per_prompt));
    }
    return best;
  }

  const GenerationStart& StartOf(std::size_t index) const {
    return choices_[index - index % style_.choices_per_prompt].start;
  }

  void AppendPromptLogprobs(std::string& body, std::size_t index) const {
    json::AppendMembers(body, "prompt_logprobs",
                        json::Raw{PromptLogprobsText(StartOf(index), *style_.prompt_logprobs)});
  }

  void AppendChoice(std::string& body, std::size_t index, std::size_t place) {
    Choice& choice = choices_[index];
    if (style_.echo) {
      const GenerationStart& start = StartOf(index);
      choice.answer.text.insert(0, EchoedText(style_, index, start));
      if (style_.logprobs) choice.logprobs.AddPromptBefore(start, style_.top_logprobs);
    }
    json::AppendComma(body);
    body += '{';
    json::AppendMembers(body, "index", place);
    if (style_.chat) {
      AppendMessage(body, index);
    } else {
      json::AppendMembers(body, "text", choice.answer.text);
    }
    const bool calls = !choice.answer.calls.empty() && !style_.named_tool;
    json::AppendMembers(body, "logprobs", json::Raw{choice.logprobs.Take()}, "finish_reason",
                        FinishReasonName(choice.end.reason, calls));
    if (!style_.chat && style_.prompt_logprobs) AppendPromptLogprobs(body, index);
    body += '}';
  }

  void AppendMessage(std::string& body, std::size_t index) const {
    const answer::Answer& answer = choices_[index].answer;
    std::optional<std::string_view> content = answer.text;
    if (answer.text.empty() && !answer.calls.empty()) content.reset();
    body += ",\"message\":{";
    json::AppendMembers(body, "role", "assistant", "content", content, "refusal", nullptr);
    if (!answer.reasoning.empty()) {
      json::AppendMembers(body, "reasoning_content", answer.reasoning);
    }
    std::size_t number = 0;
    const auto append_call = [&](std::string& out, const answer::Call& call) {
      json::AppendObject(out, "id", CallId(style_, index, number++, call.name), "type", "function",
                         "function", json::Object("name", call.name, "arguments", call.arguments));
    };
    if (!answer.calls.empty()) {
      body += ",\"tool_calls\":";
      json::AppendArray(body, answer.calls, append_call);
    }
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
    for (std::size_t i = 0; i < style_.choices; ++i) choices_.emplace_back(style_);
  }

  void Start(std::size_t index, const GenerationStart& start) override {
    choices_[index].reader.Start(start.prompt_end);
    Open(index);
    if (!style_.echo) return;
    if (style_.logprobs) choices_[index].logprobs.AddPromptBefore(start, style_.top_logprobs);
    Append(index, answer::TextDelta{EchoedText(style_, index, start)});
  }

  void Token(std::size_t index, GenerationToken token) override {
    if (style_.prompt_only) return;
    Open(index);
    Choice& choice = choices_[index];
    if (style_.logprobs) choice.logprobs.Add(token);
    if (!token.delta.empty()) choice.logprobs.Commit();
    AppendEvents(index, choice.reader.Token(token.delta));
  }

  void End(std::size_t index, GenerationEnd end) override {
    Open(index);
    Choice& choice = choices_[index];
    if (end.reason == FinishReason::kStopString) {
      choice.logprobs.Drop();
    } else {
      choice.logprobs.Commit();
    }
    if (style_.prompt_only) EndAtPrompt(end);
    AppendEvents(index, choice.reader.End(end.tail));
    AppendFinish(index, end.reason);
    usage_.Add(style_, index, end, choice.reader);
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
    explicit Choice(const AnswerStyle& style)
        : logprobs(style.chat, style.echo), reader(*style.format, style.read) {}

    Logprobs logprobs;
    answer::Reader reader;
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

  void AppendEvents(std::size_t index, const std::vector<answer::Event>& events) {
    for (const answer::Event& event : events) {
      std::visit([&](const auto& e) { Append(index, e); }, event);
    }
  }

  void Append(std::size_t index, const answer::TextDelta& delta) {
    BeginChoice(index);
    pending_ += style_.chat ? "\"delta\":{\"content\":" : "\"text\":";
    json::AppendString(pending_, delta.text);
    if (style_.chat) pending_ += '}';
    EndChoice(index);
  }

  void Append(std::size_t index, const answer::ReasoningDelta& delta) {
    BeginChoice(index);
    json::AppendMembers(pending_, "delta", json::Object("reasoning_content", delta.text));
    EndChoice(index);
  }

  void Append(std::size_t index, const answer::CallBegin& call) {
    const std::string id = CallId(style_, index, call.index, call.name);
    AppendCall(index, [&](std::string& out) {
      json::AppendObject(out, "index", call.index, "id", id, "type", "function", "function",
                         json::Object("name", call.name, "arguments", ""));
    });
  }

  void Append(std::size_t index, const answer::ArgumentsDelta& delta) {
    AppendCall(index, [&](std::string& out) {
      json::AppendObject(out, "index", delta.index, "function",
                         json::Object("arguments", delta.json));
    });
  }

  void Append(std::size_t, const answer::CallEnd&) {}

  template <class F>
  void AppendCall(std::size_t index, const F& append) {
    BeginChoice(index);
    pending_ += "\"delta\":{\"tool_calls\":[";
    append(pending_);
    pending_ += "]}";
    EndChoice(index);
  }

  void EndChoice(std::size_t index) {
    pending_.append(",\"logprobs\":").append(choices_[index].logprobs.Take());
    pending_ += ",\"finish_reason\":null}";
    pending_ += suffix_;
  }

  void AppendFinish(std::size_t index, FinishReason reason) {
    BeginChoice(index);
    pending_ += style_.chat ? "\"delta\":{}" : "\"text\":\"\"";
    pending_.append(",\"logprobs\":").append(choices_[index].logprobs.Take());
    pending_ += ",\"finish_reason\":";
    const bool calls = choices_[index].reader.calls() > 0 && !style_.named_tool;
    json::AppendString(pending_, FinishReasonName(reason, calls));
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
