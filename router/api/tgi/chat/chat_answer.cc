#include "router/api/tgi/chat/chat_answer.h"

#include <ctime>
#include <utility>

#include "router/api/sse.h"
#include "router/api/tgi/chat/tools.h"
#include "router/api/tgi/dialect.h"
#include "router/api/tgi/generate/tokens.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

class ChatAnswer final : public AnswerWriter {
 public:
  ChatAnswer(std::shared_ptr<Exchange> exchange, ChatStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)) {}

  void Token(std::size_t, GenerationToken token) override {
    if (!style_.logprobs) return;
    AppendLogprob(logprobs_, token.token, token.top);
  }

  void End(std::size_t, GenerationEnd end) override { end_ = std::move(end); }

  void AllEnded(Time) override {
    std::string message = "{\"role\":\"assistant\"";
    if (style_.uses_tools) {
      auto call = ReadCall(end_.text);
      if (const auto* error = std::get_if<ApiError>(&call)) return Failed(*error);
      if (std::get<WrittenCall>(call).name == kNoTool) return style_.again(false);
      AppendCall(message, std::get<WrittenCall>(call));
    } else {
      json::AppendMembers(message, "content", end_.text);
    }
    HttpResponse response{200, "application/json", AnswerHeaders(style_.common, end_), ""};
    std::string& body = response.body;
    body = ChunkPrefix(style_, "chat.completion") + "{\"index\":0,\"message\":" + message + "}";
    const std::string logprobs = style_.logprobs ? "{\"content\":[" + logprobs_ + "]}" : "null";
    json::AppendMembers(body, "logprobs", json::Raw{logprobs}, "finish_reason",
                        OpenAiFinishName(end_.reason));
    body += "}]";
    AppendUsage(body, end_.prompt_tokens, end_.generated_tokens);
    body += '}';
    exchange_->Respond(std::move(response));
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  static void AppendCall(std::string& out, const WrittenCall& call) {
    FunctionDefinition function;
    function.name = call.name;
    function.arguments = call.arguments;
    out += ",\"tool_calls\":[{\"id\":\"0\",\"type\":\"function\",\"function\":";
    AppendFunction(out, function);
    out += "}]";
  }

  std::shared_ptr<Exchange> exchange_;
  const ChatStyle style_;
  std::string logprobs_;
  GenerationEnd end_;
};

// Each token is one chunk. With tools nothing is sent until the name of the called function is
// known; from then on tokens are pieces of its arguments.
class ChatStream final : public AnswerWriter {
 public:
  ChatStream(std::shared_ptr<Exchange> exchange, ChatStyle style)
      : exchange_(std::move(exchange)),
        style_(std::move(style)),
        prefix_("data: " + ChunkPrefix(style_, "chat.completion.chunk")),
        state_(style_.uses_tools ? State::kBuffering : State::kContent),
        open_(style_.stream_open) {}

  void Start(std::size_t, const GenerationStart&) override { Open(); }

  void Token(std::size_t, GenerationToken token) override {
    Open();
    WriteHeld(nullptr);
    held_ = std::move(token);
  }

  void End(std::size_t, GenerationEnd end) override {
    Open();
    WriteHeld(&end);
    if (style_.include_usage && state_ != State::kNoTool) {
      pending_ += prefix_ + "],";
      AppendUsage(pending_, end.prompt_tokens, end.generated_tokens);
      pending_ += "}\n\n";
    }
  }

  bool Flush() override {
    WriteHeld(nullptr);
    const bool more = exchange_->Write(pending_);
    pending_.clear();
    return more;
  }

  void AllEnded(Time) override {
    if (state_ == State::kNoTool) {
      exchange_->Write(std::exchange(pending_, {}));
      return style_.again(true);
    }
    pending_ += sse::kDone;
    exchange_->Write(pending_);
    exchange_->Finish();
  }

  void Failed(const ApiError& error) override {
    if (open_) WriteHeld(nullptr);
    exchange_->Write(std::exchange(pending_, {}));
    FailStream(*exchange_, style_.common, open_, error);
  }

 private:
  enum class State : std::uint8_t { kContent, kBuffering, kCall, kNoTool };

  void Open() {
    if (open_) return;
    open_ = true;
    exchange_->StartStream(StreamHead(style_.common));
  }

  void WriteHeld(const GenerationEnd* end) {
    if (!held_) return;
    const GenerationToken token = *std::exchange(held_, std::nullopt);
    const std::string& text = token.token.text;
    switch (state_) {
      case State::kContent:
        return WriteContent(token, end);
      case State::kBuffering:
        text_ += text;
        return LookForCall(token, end);
      case State::kCall:
        text_ += text;
        return WriteArguments(token, end);
      case State::kNoTool:
        return;
    }
  }

  void LookForCall(const GenerationToken& token, const GenerationEnd* end) {
    const std::optional<WrittenCall> call = ReadOpenCall(text_);
    if (!call) return;
    if (call->name == kNoTool) {
      state_ = State::kNoTool;
      return;
    }
    state_ = State::kCall;
    begins_ = true;
    WriteCall(token, "{", &call->name, end);
  }

  // Removes the comma between the name and the arguments. TGI sends it if it is not in the last
  // token of the name, and then the arguments are not JSON.
  std::string WithoutComma(std::string_view piece) {
    const std::size_t first = piece.find_first_not_of(" \n\t\r");
    if (!begins_ || first == piece.npos) return std::string(piece);
    begins_ = false;
    std::string kept(piece);
    if (kept[first] == ',') kept.erase(first, 1);
    return kept;
  }

  void WriteArguments(const GenerationToken& token, const GenerationEnd* end) {
    std::string_view piece = token.token.text;
    if (std::holds_alternative<WrittenCall>(ReadCall(text_))) {
      // The brace that closes the call is not part of the arguments.
      state_ = State::kBuffering;
      piece = piece.substr(0, piece.find_last_not_of(" \n\t\r") + 1);
      if (piece.ends_with('}')) piece.remove_suffix(1);
    }
    WriteCall(token, WithoutComma(piece), nullptr, end);
  }

  void WriteContent(const GenerationToken& token, const GenerationEnd* end) {
    pending_ += prefix_ + "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":";
    json::AppendString(pending_, token.token.special ? "" : std::string_view(token.token.text));
    Close(token, end);
  }

  // As in TGI, log-probabilities show the text that the client gets of the token.
  void WriteCall(GenerationToken token, std::string arguments, const std::string* name,
                 const GenerationEnd* end) {
    token.token.text = std::move(arguments);
    if (token.token.special) return WriteContent(token, end);
    pending_ += prefix_ + "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":" +
                "[{\"index\":0,\"id\":";
    json::AppendString(pending_, style_.call_id);
    const std::optional<std::string> shown = name ? std::optional(*name) : std::nullopt;
    json::AppendMembers(pending_, "type", "function", "function",
                        json::Object("name", shown, "arguments", token.token.text));
    pending_ += "}]";
    Close(token, end);
  }

  void Close(const GenerationToken& token, const GenerationEnd* end) {
    pending_ += "},\"logprobs\":";
    if (style_.logprobs) {
      pending_ += "{\"content\":[";
      AppendLogprob(pending_, token.token, token.top);
      pending_ += "]}";
    } else {
      pending_ += "null";
    }
    std::optional<std::string_view> reason;
    if (end != nullptr) reason = OpenAiFinishName(end->reason);
    json::AppendMembers(pending_, "finish_reason", reason);
    pending_ += "}],\"usage\":null}\n\n";
  }

  std::shared_ptr<Exchange> exchange_;
  const ChatStyle style_;
  const std::string prefix_;
  State state_;
  bool open_;
  bool begins_ = false;  // nothing of the call's arguments has come yet
  std::string text_;     // since the beginning, with tools
  std::optional<GenerationToken> held_;
  std::string pending_;
};

}  // namespace

OpenAiStyle::OpenAiStyle(const ApiContext& context, std::string name)
    : model(std::move(name)),
      fingerprint(context.options.version + "-native"),
      created(static_cast<std::int64_t>(std::time(nullptr))) {}

std::string ChunkPrefix(const OpenAiStyle& style, std::string_view object) {
  std::string out = "{";
  json::AppendMembers(out, "object", object, "id", "", "created", style.created, "model",
                      style.model, "system_fingerprint", style.fingerprint);
  return out + ",\"choices\":[";
}

std::unique_ptr<AnswerWriter> MakeChatAnswer(std::shared_ptr<Exchange> exchange, ChatStyle style) {
  return std::make_unique<ChatAnswer>(std::move(exchange), std::move(style));
}

std::unique_ptr<AnswerWriter> MakeChatStream(std::shared_ptr<Exchange> exchange, ChatStyle style) {
  return std::make_unique<ChatStream>(std::move(exchange), std::move(style));
}

void AppendStreamFailure(std::string& out, const ApiError& error) {
  const auto failure = json::Object("message", TgiMessage(error), "http_status_code", 422);
  sse::AppendEvent(out, json::ObjectText("error", failure));
}

void FailStream(Exchange& exchange, const AnswerStyle& style, bool open, const ApiError& error,
                std::size_t times) {
  if (!open) exchange.StartStream(StreamHead(style));
  std::string events;
  for (std::size_t i = 0; i < times; ++i) AppendStreamFailure(events, error);
  events += sse::kDone;
  exchange.Write(events);
  exchange.Finish();
}

}  // namespace penstock::router::tgi
