#include "router/dispatch/shown_request.h"

#include <algorithm>

#include "router/json/writer.h"

namespace penstock::router {
namespace {

constexpr std::uint32_t kAllocation = 1024;  // the most tokens that TGI asks its shards for

void AppendKey(std::string& out, std::string_view key) {
  if (out.size() > 1) out += ',';
  json::AppendString(out, key);
  out += ':';
}

}  // namespace

std::string ShownRequest(const GenerationRequest& request, const GrammarSpec& grammar,
                         std::uint32_t max_new_tokens, std::uint32_t max_input_tokens) {
  std::string out = "{";
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    AppendKey(out, "text");
    json::AppendString(out, *text);
  }
  AppendKey(out, "do_sample");
  json::AppendBool(out, request.asked_sampling);
  if (request.seed) {
    AppendKey(out, "seed");
    json::AppendInteger(out, *request.seed);
  }
  AppendKey(out, "watermark");
  json::AppendBool(out, request.sampling.watermark);
  AppendKey(out, "grammar_type");
  json::AppendInteger(out, static_cast<int>(grammar.kind));
  AppendKey(out, "grammar");
  json::AppendString(out, grammar.source);
  AppendKey(out, "max_new_tokens");
  json::AppendInteger(out, std::min(max_new_tokens, kAllocation));
  AppendKey(out, "stop");
  out += '[';
  for (std::size_t i = 0; i < request.stop.size(); ++i) {
    if (i > 0) out += ',';
    json::AppendString(out, request.stop[i]);
  }
  out += ']';
  AppendKey(out, "truncate");
  json::AppendInteger(out, request.truncate.value_or(max_input_tokens));
  AppendKey(out, "add_special_tokens");
  json::AppendBool(out, request.add_special_tokens);
  if (request.adapter_id) {
    AppendKey(out, "adapter_id");
    json::AppendString(out, *request.adapter_id);
  }
  return out + "}";
}

}  // namespace penstock::router
