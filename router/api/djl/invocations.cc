#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "router/api/djl/flow.h"
#include "router/api/djl/handlers.h"
#include "router/json/reader.h"
#include "router/api/openai/handlers.h"
#include "router/api/tgi/handlers.h"

namespace penstock::router::djl {
namespace {

// Parameters that only DJL has.
constexpr std::array<std::string_view, 15> kOwnParameters = {"decoding_strategy",
                                                             "penalty_alpha",
                                                             "stop_sequences",
                                                             "output_formatter",
                                                             "use_lru_kv_cache",
                                                             "ignore_eos_token",
                                                             "min_p",
                                                             "presence_penalty",
                                                             "num_beams",
                                                             "length_penalty",
                                                             "early_stopping",
                                                             "stop_token_ids",
                                                             "min_new_tokens",
                                                             "min_length",
                                                             "include_stop_str_in_output"};

bool HasOwnParameter(json::Reader& reader) {
  bool own = false;
  std::string key;
  if (!reader.EnterObject("an object")) return false;
  while (reader.NextKey(key)) {
    own = own || std::ranges::find(kOwnParameters, key) != kOwnParameters.end();
    if (!reader.Colon() || !reader.SkipIgnored()) break;
  }
  return own;
}

}  // namespace

BodyKind KindOf(std::string_view body, BodyKind otherwise) {
  json::Reader reader(body);
  std::string key;
  bool own = false;
  bool chat = false;
  bool inputs = false;
  if (!reader.NextIs('{') || !reader.EnterObject("an object")) return otherwise;
  while (reader.NextKey(key) && reader.Colon()) {
    own = own || key == "cached_prompt" || key == "adapters";
    chat = chat || key == "messages";
    inputs = inputs || key == "inputs";
    own = own || (key == "inputs" && reader.NextIs('['));
    if (key == "parameters" && reader.NextIs('{')) {
      own = HasOwnParameter(reader) || own;
    } else if (!reader.SkipIgnored()) {
      break;
    }
  }
  if (chat && !inputs) return BodyKind::kChat;
  return own ? BodyKind::kDjl : otherwise;
}

void Invocations(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  // In TGI's place every body has TGI's meaning, and what it refuses is refused in its words.
  if (context.options.tgi_profile) {
    return tgi::Invocations(context, std::move(request), std::move(exchange));
  }
  const bool djl = context.options.djl.is_default;
  const BodyKind kind = KindOf(request.body, djl ? BodyKind::kDjl : BodyKind::kTgi);
  if (kind == BodyKind::kDjl) {
    return Serve(context, "/invocations", request, std::move(exchange));
  }
  if (kind == BodyKind::kChat && djl) {
    return openai::ChatCompletions(context, std::move(request), std::move(exchange));
  }
  tgi::Invocations(context, std::move(request), std::move(exchange));
}

}  // namespace penstock::router::djl
