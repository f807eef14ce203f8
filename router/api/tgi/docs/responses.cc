#include "router/api/tgi/docs/responses.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "router/api/errors.h"
#include "router/json/writer.h"
#include "router/api/tgi/generate/shapes.h"

namespace penstock::router::tgi {
namespace {

using enum ApiErrorKind;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kEvents = "text/event-stream";
constexpr std::string_view kLines = "application/jsonlines";
constexpr std::string_view kText = "text/plain";

struct Content {
  std::string_view media;
  std::string_view type;  // in the notation of shapes.h
};

// The good answer of a route. Rows of one profile stand before those of all.
struct Answer {
  std::string_view method;
  std::string_view pattern;
  std::array<Content, 3> contents = {};
  std::string_view failure = {};  // of the event that ends a stream which fails
  Profiles profiles = Profiles::kAll;
};

constexpr std::array<Content, 3> kDjlContents = {{
    {kJson, "DjlAnswer"},
    {kLines, "DjlStreamResponse"},
    {kEvents, "DjlStreamResponse"},
}};

constexpr Answer kAnswers[] = {
    {"POST", "/generate", {{{kJson, "GenerateResponse"}}}},
    {"POST", "/generate_stream", {{{kEvents, "StreamResponse"}}}, "ErrorResponse"},
    {"POST",
     "/",
     {{{kJson, "CompatGenerateResponse"}, {kEvents, "StreamResponse"}}},
     "ErrorResponse"},
    {"POST",
     "/invocations",
     {{{kJson, "CompatGenerateResponse,ChatCompletion,CompletionFinal"},
       {kEvents, "StreamResponse,ChatCompletionChunk,Chunk"}}},
     "ErrorResponse or ChatStreamFailure",
     Profiles::kTgi},
    {"POST",
     "/invocations",
     {{{kJson,
        "CompatGenerateResponse,ChatCompletion,CompletionFinal,DjlAnswer,OpenAiChatCompletion"},
       {kEvents, "StreamResponse,ChatCompletionChunk,Chunk,DjlStreamResponse,OpenAiChatChunk"},
       {kLines, "DjlStreamResponse"}}},
     "ErrorResponse, ChatStreamFailure or OpenAiErrorResponse"},
    {"POST", "/vertex", {{{kJson, "VertexResponse"}}}},
    {"POST", "/tokenize", {{{kJson, "TokenizeResponse"}}}},
    {"POST", "/chat_tokenize", {{{kJson, "ChatTokenizeResponse"}}}},
    {"GET", "/info", {{{kJson, "Info"}}}},
    {"GET", "/docs/", {{{"text/html", "string"}}}},
    {"GET", "/api-doc/openapi.json", {{{kJson, "object"}}}},
    {"POST", "/predictions/{id}", kDjlContents},
    {"POST", "/models/{id}", kDjlContents},
    {"POST",
     "/v1/chat/completions",
     {{{kJson, "ChatCompletion"}, {kEvents, "ChatCompletionChunk"}}},
     "ChatStreamFailure",
     Profiles::kTgi},
    {"POST",
     "/v1/completions",
     {{{kJson, "CompletionFinal"}, {kEvents, "Chunk"}}},
     "ChatStreamFailure",
     Profiles::kTgi},
    {"POST",
     "/v1/chat/completions",
     {{{kJson, "OpenAiChatCompletion"}, {kEvents, "OpenAiChatChunk"}}},
     "OpenAiErrorResponse"},
    {"POST",
     "/v1/completions",
     {{{kJson, "OpenAiCompletion"}, {kEvents, "OpenAiCompletion"}}},
     "OpenAiErrorResponse"},
    {"GET", "/v1/models", {{{kJson, "ModelsInfo"}}}},
    {"GET", "/v1/models/{id}", {{{kJson, "ModelInfo"}}}},
    {"POST", "/inference", {{{kJson, "InferenceResponse"}}}},
    {"GET", "/stats", {{{kJson, "Stats"}}}},
    {"DELETE", "/stats", {{{kJson, "StatsReset"}}}},
    {"GET", "/live", {{{kJson, "Status"}}}},
    {"GET", "/ready", {{{kJson, "Status"}}}},
    {"GET", "/metrics", {{{kText, "string"}}}},
    {"GET", "/requests/{id}", {{{kJson, "RequestRecord"}}}},
    {"GET", "/cached_prompts", {{{kJson, "CachedPrompts"}}}},
    {"DELETE", "/cached_prompts", {{{kJson, "Forgotten"}}}},
    {"DELETE", "/cached_prompts/{id}", {{{kJson, "Forgotten"}}}},
};

// Null for a route whose good answer has no body.
const Answer* FindAnswer(const Route& route, bool tgi_profile) {
  for (const Answer& answer : kAnswers) {
    const bool served =
        answer.profiles == Profiles::kAll || (answer.profiles == Profiles::kTgi) == tgi_profile;
    if (served && answer.method == route.method && answer.pattern == route.pattern) return &answer;
  }
  return nullptr;
}

std::string_view DescribeStatus(int status) {
  constexpr std::pair<int, std::string_view> kTexts[] = {
      {400, "The request cannot be read, or is wrong"},
      {401, "The API key is missing or wrong"},
      {404, "There is none of that name"},
      {413, "The body is too long"},
      {415, "The body is not declared as JSON"},
      {422, "The request is wrong"},
      {424, "Generating failed"},
      {429, "Too many requests"},
      {503, "Nothing is taken now"},
      {504, "The request's time is over"},
  };
  const auto* found = std::ranges::find(kTexts, status, &std::pair<int, std::string_view>::first);
  return found == std::end(kTexts) ? "The server failed" : found->second;
}

std::string_view ErrorSchema(Dialect dialect) {
  if (dialect == Dialect::kOpenAi) return "OpenAiErrorResponse";
  return dialect == Dialect::kDjl ? "DjlErrorResponse" : "ErrorResponse";
}

// By status, then by media type: the schemas.
using Errors = std::map<int, std::map<std::string_view, std::set<std::string_view>>>;

std::vector<ApiErrorKind> KindsOf(const Route& route) {
  std::vector<ApiErrorKind> kinds;
  if (route.access == Access::kKey) kinds.push_back(kUnauthorized);
  if (route.pattern.ends_with("{id}")) kinds.push_back(kNotFound);
  if (route.method != "POST") return kinds;
  for (const ApiErrorKind kind : {kMalformedJson, kWrongType, kContentType, kValidation, kTooLarge,
                                  kOverloaded, kUnavailable, kInternal}) {
    kinds.push_back(kind);
  }
  if (!Generates(route)) return kinds;
  kinds.push_back(kGeneration);
  kinds.push_back(kDeadline);
  return kinds;
}

Errors ErrorsOf(const Route& route, bool tgi_profile) {
  Errors errors;
  std::vector<Dialect> dialects = {route.dialect};
  if (route.pattern == "/invocations" && !tgi_profile) {
    dialects.push_back(Dialect::kOpenAi);
    dialects.push_back(Dialect::kDjl);
  }
  for (const Dialect dialect : dialects) {
    for (const ApiErrorKind kind : KindsOf(route)) {
      const HttpResponse response = ErrorResponse(dialect, {kind, "", ""});
      const bool silent = tgi_profile && kind == kUnauthorized;
      const bool plain = response.content_type.starts_with(kText);
      if (silent) {
        errors[response.status];
      } else {
        errors[response.status][plain ? kText : kJson].emplace(plain ? "string"
                                                                     : ErrorSchema(dialect));
      }
    }
  }
  if (route.pattern == "/ready") errors[503][kJson].insert("Status");
  if (route.method == "GET" && FindAnswer(route, tgi_profile) == nullptr &&
      route.pattern != "/docs") {
    errors[503][kJson].insert("ErrorResponse");
  }
  return errors;
}

void AppendContent(std::string& out, std::string_view media, std::string_view type) {
  if (!out.ends_with('{')) out += ',';
  json::AppendString(out, media);
  out += ":{\"schema\":";
  AppendType(out, type);
  out += '}';
}

std::string Either(const std::set<std::string_view>& types) {
  std::string either;
  for (const std::string_view type : types) {
    if (!either.empty()) either += ',';
    either += type;
  }
  return either;
}

void AppendGood(std::string& out, const Route& route, const Answer* answer) {
  if (route.pattern == "/docs") {
    out += "\"303\":{\"description\":\"To /docs/\"}";
    return;
  }
  std::string description = "The answer";
  if (answer != nullptr && !answer->failure.empty()) {
    description.append(". A stream that fails ends with an event of ").append(answer->failure);
  }
  json::AppendString(out += "\"200\":{\"description\":", description);
  if (answer != nullptr) {
    out += ",\"content\":{";
    for (const auto& [media, type] : answer->contents) {
      if (!media.empty()) AppendContent(out, media, type);
    }
    out += '}';
  }
  out += '}';
}

}  // namespace

void AppendResponses(std::string& out, const Route& route, bool tgi_profile) {
  out += "\"responses\":{";
  AppendGood(out, route, FindAnswer(route, tgi_profile));
  for (const auto& [status, contents] : ErrorsOf(route, tgi_profile)) {
    out.append(",\"").append(std::to_string(status)).append("\":{\"description\":");
    json::AppendString(out, DescribeStatus(status));
    if (!contents.empty()) {
      out += ",\"content\":{";
      for (const auto& [media, types] : contents) {
        AppendContent(out, media, Either(types));
      }
      out += '}';
    }
    out += '}';
  }
  out += '}';
}

}  // namespace penstock::router::tgi
