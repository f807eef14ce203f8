#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "router/api/tgi/chat/chat.h"
#include "router/api/tgi/chat/chat_answer.h"
#include "router/api/tgi/chat/chat_prepare.h"
#include "router/api/tgi/errors.h"
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
  std::string client_id;
  std::variant<Hints, ApiError> hints;
  std::shared_ptr<Exchange> exchange;
  ChatStyle style;
};

void StartChat(ApiContext& context, std::shared_ptr<ChatJob> job);

void Refuse(ApiContext& context, const ChatJob& job, const ApiError& error) {
  context.metrics.requests().Failed(NameOf(error.kind));
  if (job.style.stream_open) return FailStream(*job.exchange, job.style.common, true, error);
  job.exchange->Respond(Errors().Response(error));
}

void Generate(ApiContext& context, const std::shared_ptr<ChatJob>& job, PreparedChat prepared) {
  const Time arrived = job->style.common.arrived;
  ChatStyle style = job->style;
  style.common = CommonStyle(context, prepared.request.inputs, arrived);
  style.uses_tools = prepared.uses_tools;
  style.again = [&context, job](bool stream_open) {
    job->chat.tools = std::nullopt;
    job->chat.response_format = std::nullopt;
    job->style.stream_open = stream_open;
    StartChat(context, job);
  };
  const bool stream = job->chat.stream;
  Job generation;
  generation.mode = stream ? Mode::kStream : Mode::kPlain;
  generation.arrived = arrived;
  generation.client_id = job->client_id;
  generation.hints = job->hints;
  generation.exchange = job->exchange;
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

std::int64_t UnixSeconds() { return static_cast<std::int64_t>(std::time(nullptr)); }

std::string Fingerprint(const ApiContext& context) { return context.options.version + "-native"; }

void ServeChat(ApiContext& context, const RequestHead& head, ChatRequest chat,
               std::shared_ptr<Exchange> exchange) {
  auto job = std::make_shared<ChatJob>();
  job->client_id = head.request_id;
  job->hints = ReadHints(head);
  job->exchange = std::move(exchange);
  const bool named = chat.model && *chat.model != "tgi";
  job->style.model = named ? *chat.model : context.engine.Facts().model_id;
  job->style.fingerprint = Fingerprint(context);
  job->style.created = UnixSeconds();
  job->style.logprobs = chat.logprobs.value_or(false);
  job->style.include_usage = chat.stream_options.include_usage;
  job->style.call_id = NextCallId(chat.messages);
  job->style.common.arrived = head.arrived;
  job->chat = std::move(chat);
  StartChat(context, std::move(job));
}

void ChatCompletions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  context.metrics.requests().Arrived("/v1/chat/completions");
  ParsedChat parsed = ParseChat(http.body);
  context.metrics.requests().UnknownKeys("tgi", parsed.unknown_keys);
  if (parsed.error) return RefuseRequest(context, *exchange, Errors(), *parsed.error);
  ServeChat(context, http.head, std::move(parsed.request), std::move(exchange));
}

}  // namespace penstock::router::tgi
