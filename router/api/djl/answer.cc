#include "router/api/djl/answer.h"

#include <optional>
#include <utility>

#include "router/api/djl/dialect.h"
#include "router/api/sse.h"
#include "router/api/tgi/generate/tokens.h"
#include "router/json/writer.h"

namespace penstock::router::djl {

AnswerStyle StyleOf(const DjlOptions& options, const Request& request, Formatter formatter) {
  AnswerStyle style;
  style.formatter = formatter;
  style.list = request.inputs.list;
  style.tgi_compat = options.tgi_compat;
  style.details = request.parameters.details.value_or(options.tgi_compat);
  style.prefill = request.parameters.decoder_input_details;
  style.full_text = request.parameters.return_full_text;
  style.inputs = request.inputs.texts;
  return style;
}

namespace {

// Whether this error fails one input of a list only. Then it takes the place of that input's
// answer. An error of something that all inputs share fails all of them.
bool FailsAlone(const AnswerStyle& style, const ApiError& error) {
  if (!style.list || style.inputs.size() == 1) return false;
  // A length error depends on the prompt: another prompt of the list may fit.
  return error.kind != ApiErrorKind::kValidation || error.field.empty() || error.field == "inputs";
}

void AppendToken(std::string& out, const AnswerStyle& style, const TokenInfo& token) {
  out += '{';
  json::AppendMembers(out, "id", token.id, "text", token.text,
                      style.tgi_compat ? "logprob" : "log_prob", token.logprob);
  if (style.tgi_compat) json::AppendMembers(out, "special", token.special);
  if (!style.tgi_compat && token.special) json::AppendMembers(out, "special_token", true);
  out += '}';
}

// The elements of a list.
void AppendTokens(std::string& out, const AnswerStyle& style,
                  const std::vector<TokenInfo>& tokens) {
  for (const TokenInfo& token : tokens) {
    json::AppendComma(out);
    AppendToken(out, style, token);
  }
}

// "finish_reason":…,"generated_tokens":…,"inputs":…
void AppendDetails(std::string& out, const AnswerStyle& style, std::size_t index,
                   const GenerationEnd& end) {
  json::AppendMembers(out, "finish_reason", tgi::FinishReasonName(end.reason), "generated_tokens",
                      end.generated_tokens);
  if (style.tgi_compat) json::AppendMembers(out, "seed", tgi::SeedOf(end));
  json::AppendMembers(out, "inputs", style.inputs[index]);
}

std::string FullText(const AnswerStyle& style, std::size_t index, const std::string& text) {
  return style.full_text ? style.inputs[index] + text : text;
}

// One object, or a list of them in the order of the inputs. An input that failed has its error in
// its place. If all failed, status and headers are those of the first.
class PlainAnswer final : public AnswerWriter {
 public:
  PlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)), parts_(style_.inputs.size()) {}

  void Start(std::size_t index, const GenerationStart& start) override {
    if (style_.prefill) AppendTokens(parts_[index].prefill, style_, start.prompt);
  }

  void Token(std::size_t index, GenerationToken token) override {
    if (!style_.details) return;
    Part& part = parts_[index];
    AppendTokens(part.tokens, style_, {token.token});
    AppendTokens(part.top_tokens, style_, token.top);
  }

  void End(std::size_t index, GenerationEnd end) override { parts_[index].end = std::move(end); }

  bool FailedAlone(std::size_t index, const ApiError& error) override {
    if (!FailsAlone(style_, error)) return false;
    parts_[index].error = Errors().Body(error);
    if (!first_error_) first_error_ = error;
    return true;
  }

  void AllEnded(Time) override {
    const bool array = style_.list || style_.tgi_compat;
    std::string body = array ? "[" : "";
    for (std::size_t i = 0; i < parts_.size(); ++i) AppendPart(body, i);
    if (array) body += ']';
    const auto failed = [](const Part& part) { return !part.error.empty(); };
    if (!std::ranges::all_of(parts_, failed)) {
      return exchange_->Respond(JsonResponse(std::move(body)));
    }
    HttpResponse response = Errors().Response(*first_error_);
    response.body = std::move(body);
    exchange_->Respond(std::move(response));
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  struct Part {
    std::string prefill;  // elements of the lists of details
    std::string tokens;
    std::string top_tokens;
    GenerationEnd end;
    std::string error;
  };

  void AppendPart(std::string& body, std::size_t index) const {
    const Part& part = parts_[index];
    json::AppendComma(body);
    if (!part.error.empty()) {
      body += part.error;
      return;
    }
    body += '{';
    json::AppendMembers(body, "generated_text", FullText(style_, index, part.end.text));
    if (style_.details || style_.prefill) {
      body += ",\"details\":{";
      AppendDetails(body, style_, index, part.end);
      body.append(",\"tokens\":[").append(part.tokens).append("]");
      if (style_.prefill) body.append(",\"prefill\":[").append(part.prefill).append("]");
      if (!part.top_tokens.empty()) {
        body.append(",\"top_tokens\":[").append(part.top_tokens).append("]");
      }
      body += '}';
    }
    body += '}';
  }

  std::shared_ptr<Exchange> exchange_;
  AnswerStyle style_;
  std::vector<Part> parts_;
  std::optional<ApiError> first_error_;  // of an input
};

// One object per token, as a line or an event; the last of an input carries its whole text. So a
// token waits until the next event of its batch is known. The status is sent with the first token,
// so an error before it has its own status. With a list of inputs each object names its input.
class StreamAnswer final : public AnswerWriter {
 public:
  StreamAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)), held_(style_.inputs.size()) {}

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
    if (style_.formatter == Formatter::kJsonLines) {
      head.content_type = "application/jsonlines";
      head.filler = {};
    }
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

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style) {
  if (style.formatter == Formatter::kJson) {
    return std::make_unique<PlainAnswer>(std::move(exchange), std::move(style));
  }
  return std::make_unique<StreamAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::djl
