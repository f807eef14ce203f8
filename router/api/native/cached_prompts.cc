#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/errors.h"
#include "router/api/native/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::native {
namespace {

void AppendPrompt(std::string& out, const CachedPrompt& prompt, Time now) {
  const double unused = std::chrono::duration<double>(now - prompt.last_used).count();
  out += "{\"id\":";
  json::AppendInteger(out, prompt.id);
  out += ",\"prompt\":";
  json::AppendString(out, prompt.text);
  out += ",\"tokens\":";
  json::AppendInteger(out, prompt.tokens);
  out += ",\"blocks\":";
  json::AppendInteger(out, prompt.blocks);
  out += ",\"group\":";
  json::AppendInteger(out, prompt.group.value());
  out += ",\"uses\":";
  json::AppendInteger(out, prompt.uses);
  out += ",\"unused_seconds\":";
  json::AppendDouble(out, unused);
  out += '}';
}

}  // namespace

void CachedPrompts(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const Time now = SteadyNow();
  std::string body = "{\"cached_prompts\":[";
  for (const CachedPrompt& prompt : context.engine.CachedPrompts(request.head.tenant)) {
    if (body.back() != '[') body += ',';
    AppendPrompt(body, prompt, now);
  }
  exchange->Respond({200, "application/json", {}, body + "]}"});
}

void ForgetCachedPrompts(ApiContext& context, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/cached_prompts/";
  std::optional<std::uint64_t> id;
  if (request.head.path.starts_with(kPrefix)) {
    const std::string_view text = std::string_view(request.head.path).substr(kPrefix.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id.emplace());
    if (error != std::errc() || end != text.data() + text.size()) id = UINT64_MAX;  // nobody's
  }
  const std::size_t count = context.engine.ForgetCachedPrompts(request.head.tenant, id);
  if (id && count == 0) {
    return exchange->Respond(context.dialects.fallback().Errors().Response(
        {ApiErrorKind::kNotFound, "no cached prompt of this id", "id"}));
  }
  exchange->Respond({200, "application/json", {}, "{\"forgotten\":" + std::to_string(count) + "}"});
}

}  // namespace penstock::router::native
