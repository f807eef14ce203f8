#include "router/api/sagemaker/dialect.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "router/api/djl/dialect.h"
#include "router/api/openai/dialect.h"
#include "router/api/run.h"
#include "router/api/tgi/dialect.h"
#include "router/http/text.h"
#include "router/json/reader.h"

namespace penstock::router::sagemaker {
namespace {

// Parameters that only DJL has.
constexpr std::string_view kOwnParameters[] = {"decoding_strategy",
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

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = AsciiLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string DecodePercent(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '%' && i + 2 < text.size();
    const int high = pair ? HexDigit(text[i + 1]) : -1;
    const int low = pair ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool HasOwnParameter(json::Reader& reader) {
  bool own = false;
  std::string key;
  if (!reader.EnterObject("an object")) return false;
  while (reader.NextKey(key)) {
    own = own || std::ranges::find(kOwnParameters, key) != std::end(kOwnParameters);
    if (!reader.Colon() || !reader.Skip()) break;
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
    own = own || key == "cached_prompt" || key == "adapters" || key == "adapter";
    chat = chat || key == "messages";
    inputs = inputs || key == "inputs";
    own = own || (key == "inputs" && reader.NextIs('['));
    if (key == "parameters" && reader.NextIs('{')) {
      own = HasOwnParameter(reader) || own;
    } else if (!reader.Skip()) {
      break;
    }
  }
  if (chat && !inputs) return BodyKind::kChat;
  return own ? BodyKind::kDjl : otherwise;
}

namespace {

// `model_name` of the query, else the header of that name, as DJL-Serving reads them; empty if
// neither names a model. DJL-Serving does not read the name in a JSON body.
std::string ModelNameIn(const RequestHead& head) {
  constexpr std::string_view kKey = "model_name=";
  std::string_view query = head.query;
  std::string name;
  while (!query.empty() && name.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.starts_with(kKey)) name = DecodePercent(pair.substr(kKey.size()));
  }
  return name.empty() ? std::string(head.Find("model_name")) : name;
}

void Invocations(ApiContext& context, const DjlOptions& options, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  const std::string model = ModelNameIn(request.head);
  if (!model.empty() && !djl::IsServed(context.engine.Facts(), model)) {
    context.metrics.requests().Arrived("/invocations");
    return RefuseRequest(context, *exchange, context.dialects.fallback().Errors(),
                         djl::ModelNotFound(model));
  }
  const bool djl = options.is_default;
  const BodyKind kind = KindOf(request.body, djl ? BodyKind::kDjl : BodyKind::kTgi);
  if (kind == BodyKind::kDjl) {
    return djl::Serve(context, options, "/invocations", request, std::move(exchange));
  }
  if (kind == BodyKind::kChat && djl) {
    return openai::ChatCompletions(context, std::move(request), std::move(exchange));
  }
  tgi::Invocations(context, std::move(request), std::move(exchange), true);
}

std::vector<Route> Routes(const DjlOptions& options) {
  const auto handler = [options](ApiContext& context, HttpRequest request,
                                 std::shared_ptr<Exchange> exchange) {
    Invocations(context, options, std::move(request), std::move(exchange));
  };
  return {Post("/invocations", handler,
               {.body = "CompatGenerateRequest,ChatRequest,CompletionRequest,DjlRequest,"
                        "OpenAiChatRequest",
                .contents = {{{kJson,
                               "CompatGenerateResponse,ChatCompletion,CompletionFinal,DjlAnswer,"
                               "OpenAiChatCompletion"},
                              {kEvents,
                               "StreamResponse,ChatCompletionChunk,Chunk,DjlStreamResponse,"
                               "OpenAiChatChunk"},
                              {"application/jsonlines", "DjlStreamResponse"}}},
                .failure = "ErrorResponse, ChatStreamFailure or OpenAiErrorResponse"})};
}

class SageMakerDialect final : public Dialect {
 public:
  SageMakerDialect(const DjlOptions& options, const Dialect& fallback)
      : Dialect(Routes(options)), fallback_(fallback) {}
  const ErrorFormat& Errors() const override { return fallback_.Errors(); }
  std::vector<const ErrorFormat*> DocumentedErrors() const override {
    return {&tgi::Errors(), &openai::Errors(), &djl::Errors()};
  }

 private:
  const Dialect& fallback_;
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect(const DjlOptions& options, const Dialect& fallback) {
  return std::make_unique<SageMakerDialect>(options, fallback);
}

}  // namespace penstock::router::sagemaker
