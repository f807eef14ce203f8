#include "router/api/vectors/run_embed.h"

#include <atomic>
#include <cmath>
#include <ctime>
#include <utility>

#include "router/api/guard.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/run.h"
#include "router/json/writer.h"

namespace penstock::router::vectors {
namespace {

std::optional<ApiError> Check(const ApiContext& context, const EmbedRun& run) {
  const ModelFacts facts = context.engine.Facts();
  if (!openai::IsServedModel(facts, run.model)) return openai::ModelNotFound(facts, run.model);
  if (!facts.vectors) {
    return ApiError{ApiErrorKind::kUnsupported,
                    "the model `" + facts.served_name +
                        "` generates text and gives no vectors; start the server with an embedding "
                        "model or a classifier, or with --task embed",
                    "model"};
  }
  const std::size_t count = run.job.inputs.size();
  const std::uint32_t most = context.options.max_embed_batch_size;
  if (count > 0 && count <= most) return std::nullopt;
  return MustBe(run.field, "from 1 to " + std::to_string(most) + " texts (--max-embed-batch-size)",
                std::to_string(count));
}

// The engine's error about a text names the field of this route.
ApiError About(const GenerationError& error, const ApiContext& context, std::string_view field) {
  ApiError api = openai::Errors().FromEngine(error, context.options);
  if (error.length || error.field == "input") {
    api.field = field;
    if (error.length) api.message = "`" + std::string(field) + "`: " + error.message;
  }
  return api;
}

// What a request holds until its answer.
struct Open {
  std::shared_ptr<Exchange> exchange;
  Permit permit;
  std::string field;
  std::string tenant;
  Time arrived;
  std::size_t texts = 0;
  MakeBody make_body;
};

void Answer(ApiContext& context, Open& open, const EmbedResult& result) {
  open.permit = Permit();
  if (const auto* error = std::get_if<GenerationError>(&result)) {
    return Refuse(context, *open.exchange, About(*error, context, open.field));
  }
  const auto& embedded = std::get<Embedded>(result);
  const Duration elapsed = SteadyNow() - open.arrived;
  context.metrics.requests().Vectors(open.texts, embedded.tokens);
  context.metrics.requests().TotalTime(elapsed);
  context.metrics.requests().Succeeded("vectors");
  context.metrics.tenants().Tokens(open.tenant, embedded.tokens, 0);
  context.gate.Spend(open.tenant, embedded.tokens, SteadyNow());
  open.exchange->Ended(
      {.finish_reason = "vectors", .tokens = TokenCounts{embedded.tokens, 0, elapsed}});
  open.exchange->Respond(JsonResponse(open.make_body(embedded)));
}

}  // namespace

void Refuse(ApiContext& context, Exchange& exchange, ApiError error) {
  RefuseRequest(context, exchange, openai::Errors(), std::move(error));
}

void RunEmbed(ApiContext& context, const RequestHead& head, EmbedRun run,
              std::shared_ptr<Exchange> exchange, MakeBody make_body) {
  if (auto error = Check(context, run)) return Refuse(context, *exchange, *std::move(error));
  auto permit = context.permits.Take(1);
  if (!permit) {
    return Refuse(context, *exchange,
                  openai::Errors().TooManyRequests(context.options.max_concurrent_requests));
  }
  if (auto error = EnterTenant(context, head.tenant, *permit)) {
    return Refuse(context, *exchange, *std::move(error));
  }
  context.metrics.tenants().Request(head.tenant);
  auto open = std::make_shared<Open>();
  open->exchange = std::move(exchange);
  open->permit = *std::move(permit);
  open->field = run.field;
  open->tenant = head.tenant;
  open->arrived = head.arrived;
  open->texts = run.job.inputs.size();
  open->make_body = std::move(make_body);
  context.engine.Embed(std::move(run.job), [&context, open](const EmbedResult& result) {
    Answer(context, *open, result);
  });
}

std::vector<EmbedInput> InputsOf(openai::Prompts prompts) {
  std::vector<EmbedInput> inputs;
  for (openai::Prompt& prompt : prompts.list) inputs.push_back({std::move(prompt)});
  return inputs;
}

EmbedJob JobOf(const Common& request, std::vector<EmbedInput> inputs) {
  EmbedJob job{std::move(inputs), request.add_special_tokens};
  // -1 means the limit of the model, which the engine applies to every cut.
  if (request.truncate_prompt_tokens) {
    job.truncate = static_cast<std::uint32_t>(*request.truncate_prompt_tokens);
  }
  return job;
}

std::optional<ApiError> CheckTruncation(const Common& request) {
  if (!request.truncate_prompt_tokens) return std::nullopt;
  const std::int32_t most = *request.truncate_prompt_tokens;
  if (most == -1 || most > 0) return std::nullopt;
  return MustBe("truncate_prompt_tokens", "-1 or above 0", std::to_string(most));
}

AnswerHead MakeHead(const ApiContext& context, std::string_view prefix, const RequestHead& head) {
  static std::atomic<std::uint64_t> next{0};
  return {std::string(prefix) + "-" + head.request_id + "-" + std::to_string(++next),
          context.engine.Facts().served_name, static_cast<std::int64_t>(std::time(nullptr))};
}

void AppendUsage(std::string& out, const Embedded& embedded) {
  json::AppendMembers(
      out, "usage",
      json::Object("prompt_tokens", embedded.tokens, "total_tokens", embedded.tokens));
}

std::vector<float> Shortened(std::vector<float> vector, std::size_t size, bool unit) {
  vector.resize(std::min(size, vector.size()));
  if (!unit) return vector;
  double square = 0;
  for (const float x : vector) square += double{x} * x;
  const double scale = square > 0 ? 1.0 / std::sqrt(square) : 0.0;
  for (float& x : vector) x = static_cast<float>(x * scale);
  return vector;
}

float Cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0, left = 0, right = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    left += double{a[i]} * a[i];
    right += double{b[i]} * b[i];
  }
  const double lengths = std::sqrt(left * right);
  return lengths > 0 ? static_cast<float>(product / lengths) : 0.0f;
}

}  // namespace penstock::router::vectors
