#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "router/api/tgi/chat/chat_answer.h"
#include "router/api/tgi/chat/chat_prepare.h"
#include "router/api/tgi/chat/serve.h"
#include "router/api/tgi/dialect.h"
#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"

namespace penstock::router::tgi {
namespace {

std::string RandomUuid() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) < 0) bytes.fill(0);
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    constexpr std::string_view kHex = "0123456789abcdef";
    text += kHex[bytes[i] >> 4];
    text += kHex[bytes[i] & 0xf];
  }
  return text;
}

// One more than the largest id of the calls in the history. If an id is not a number, a random id.
std::string NextCallId(const std::vector<Message>& messages) {
  std::uint64_t next = 0;
  for (const Message& message : messages) {
    for (const std::string& id : message.call_ids) {
      std::uint64_t number = 0;
      const char* begin = id.data() + (id.starts_with('+') ? 1 : 0);
      const char* end = id.data() + id.size();
      const auto result = std::from_chars(begin, end, number);
      if (result.ec != std::errc() || result.ptr != end) return RandomUuid();
      next = std::max(next, number + 1);
    }
  }
  return std::to_string(next);
}

// What a second generation needs.
struct ChatJob {
  ChatRequest chat;
  RequestHead head;
  std::shared_ptr<Exchange> exchange;
  ChatStyle style;
};

void StartChat(ApiContext& context, std::shared_ptr<ChatJob> job);

void Refuse(ApiContext& context, const ChatJob& job, const ApiError& error) {
  CountRefusal(context, *job.exchange, error);
  if (job.style.stream_open) return FailStream(*job.exchange, job.style.common, true, error);
  job.exchange->Respond(Errors().Response(error));
}

void Generate(ApiContext& context, const std::shared_ptr<ChatJob>& job, PreparedChat prepared) {
  ChatStyle style = job->style;
  style.common = CommonStyle(context, prepared.request.inputs, job->head.arrived);
  style.uses_tools = prepared.uses_tools;
  style.again = [&context, job](bool stream_open) {
    job->chat.tools = std::nullopt;
    job->chat.response_format = std::nullopt;
    job->style.stream_open = stream_open;
    StartChat(context, job);
  };
  const bool stream = job->chat.stream;
  Job generation(job->head, job->exchange, stream);
  generation.refuse = [exchange = job->exchange, style, stream](const ApiError& error) {
    if (stream) return FailStream(*exchange, style.common, style.stream_open, error);
    exchange->Respond(Errors().Response(error));
  };
  generation.make_writer = [exchange = job->exchange, style, stream](std::size_t) {
    return stream ? MakeChatStream(exchange, style) : MakeChatAnswer(exchange, style);
  };
  generation.requests.push_back(std::move(prepared.request));
  StartJob(context, std::move(generation));
}

void StartChat(ApiContext& context, std::shared_ptr<ChatJob> job) {
  const ChatRequest& chat = job->chat;
  PrepareChat(context, chat, [&context, job](std::variant<PreparedChat, ApiError> prepared) {
    if (const auto* error = std::get_if<ApiError>(&prepared)) return Refuse(context, *job, *error);
    Generate(context, job, std::get<PreparedChat>(std::move(prepared)));
  });
}

}  // namespace

void ServeChat(ApiContext& context, const RequestHead& head, ChatRequest chat,
               std::shared_ptr<Exchange> exchange) {
  const bool named = chat.model && *chat.model != "tgi";
  ChatStyle style(context, named ? *chat.model : context.engine.Facts().model_id);
  auto job = std::make_shared<ChatJob>(
      ChatJob{std::move(chat), head, std::move(exchange), std::move(style)});
  job->style.logprobs = job->chat.logprobs.value_or(false);
  job->style.include_usage = job->chat.stream_options.include_usage;
  job->style.call_id = NextCallId(job->chat.messages);
  StartChat(context, std::move(job));
}

void ChatCompletions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<ChatRequest> parsed = ParseChat(http.body);
  if (!Accept(context, "/v1/chat/completions", "tgi", Errors(), parsed, *exchange)) return;
  ServeChat(context, http.head, std::move(parsed.request), std::move(exchange));
}

}  // namespace penstock::router::tgi
