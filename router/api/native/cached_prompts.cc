#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/errors.h"
#include "router/api/native/dialect.h"
#include "router/http/text.h"
#include "router/json/writer.h"

namespace penstock::router::native {

void CachedPrompts(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const auto append = [now = SteadyNow()](std::string& out, const CachedPrompt& prompt) {
    const double unused = std::chrono::duration<double>(now - prompt.last_used).count();
    json::AppendObject(out, "id", prompt.id, "prompt", prompt.text, "tokens", prompt.tokens,
                       "blocks", prompt.blocks, "group", prompt.group.value(), "uses", prompt.uses,
                       "unused_seconds", unused);
  };
  const std::vector<CachedPrompt> prompts = context.engine.CachedPrompts(request.head.tenant);
  exchange->Respond(JsonResponse(json::ObjectText("cached_prompts", json::Array(prompts, append))));
}

void ForgetCachedPrompts(ApiContext& context, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/cached_prompts/";
  std::optional<std::uint64_t> id;
  std::string text;
  if (request.head.path.starts_with(kPrefix)) {
    text = PercentDecoded(std::string_view(request.head.path).substr(kPrefix.size()));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id.emplace());
    if (error != std::errc() || end != text.data() + text.size()) id = UINT64_MAX;  // of no prompt
  }
  const std::size_t count = context.engine.ForgetCachedPrompts(request.head.tenant, id);
  if (id && count == 0) {
    return exchange->Respond(context.dialects.fallback().Errors().Response(
        {ApiErrorKind::kNotFound, "no cached prompt " + text, "id"}));
  }
  exchange->Respond(JsonResponse(json::ObjectText("forgotten", count)));
}

}  // namespace penstock::router::native
