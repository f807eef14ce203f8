#include <array>
#include <utility>

#include "router/api/tgi/chat/chat_prepare.h"
#include "router/api/tgi/dialect.h"
#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"
#include "router/json/value.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {

// One of Vertex AI's instances: a generation or a chat.
struct VertexInstance {
  std::variant<Request, ChatRequest> what;
};

struct VertexGeneration {
  std::string inputs;
  std::optional<Parameters> parameters;
};

constexpr auto kGeneration = std::array{
    json::MakeField<&VertexGeneration::inputs>("inputs", "a string", true),
    json::MakeField<&VertexGeneration::parameters>("parameters", "struct Parameters"),
};

struct VertexRequest {
  std::vector<VertexInstance> instances;
};

bool ReadValue(json::Reader& reader, VertexInstance& out, std::string_view) {
  std::string_view raw;
  if (!reader.ReadRaw(raw)) return false;
  json::Reader instance(raw, kLimits);
  VertexGeneration generation;
  if (json::ReadObject<VertexGeneration>(instance, kGeneration, generation, "struct Instance")) {
    Request& request = out.what.emplace<Request>();
    request.inputs = std::move(generation.inputs);
    reader.unknown_keys().Add(instance.unknown_keys());
    if (generation.parameters) request.parameters = *std::move(generation.parameters);
    return true;
  }
  if (auto parsed = ParseChat(raw); !parsed.error) {
    reader.unknown_keys().Add(parsed.unknown_keys);
    out.what = std::move(parsed.request);
    return true;
  }
  return reader.FailShape("data did not match any variant of untagged enum VertexInstance");
}

namespace {

constexpr auto kVertexRequest = std::array{
    json::MakeField<&VertexRequest::instances>("instances", "a sequence", true),
};

// The answer to every error after the body was accepted.
HttpResponse Incomplete() {
  return {500,
          "application/json",
          {},
          "{\"error\":\"Incomplete generation\",\"error_type\":\"Incomplete generation\"}"};
}

class VertexAnswer final : public AnswerWriter {
 public:
  VertexAnswer(std::shared_ptr<Exchange> exchange, std::size_t instances)
      : exchange_(std::move(exchange)), texts_(instances) {}

  void End(std::size_t index, GenerationEnd end) override { texts_[index] = std::move(end.text); }
  void Failed(const ApiError&) override { exchange_->Respond(Incomplete()); }

  void AllEnded(Time) override {
    const auto predictions = json::Array(texts_, json::AppendString);
    exchange_->Respond(JsonResponse(json::ObjectText("predictions", predictions)));
  }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::vector<std::string> texts_;
};

// Only the length and the seed of an instance's parameters count, as in TGI; of a chat all do.
Request Reduced(const Request& request) {
  Request reduced = request;
  reduced.parameters = Parameters{};
  reduced.parameters.do_sample = true;
  reduced.parameters.max_new_tokens = request.parameters.max_new_tokens;
  reduced.parameters.details = true;
  reduced.parameters.decoder_input_details = true;
  reduced.parameters.seed = request.parameters.seed;
  return reduced;
}

// Prepares the instances one after another, because templates are rendered on other threads; then
// starts one run.
struct VertexJob {
  std::vector<VertexInstance> instances;
  std::vector<Request> requests;
  RequestHead head;
  std::shared_ptr<Exchange> exchange;
};

void Launch(ApiContext& context, const std::shared_ptr<VertexJob>& job) {
  Job all(job->head, job->exchange, false);
  all.requests = std::move(job->requests);
  all.refuse = [exchange = job->exchange](const ApiError&) { exchange->Respond(Incomplete()); };
  all.make_writer = [exchange = job->exchange](std::size_t candidates) {
    return std::make_unique<VertexAnswer>(exchange, candidates);
  };
  StartJob(context, std::move(all));
}

void PrepareNext(ApiContext& context, std::shared_ptr<VertexJob> job) {
  while (job->requests.size() < job->instances.size()) {
    const VertexInstance& instance = job->instances[job->requests.size()];
    if (const auto* request = std::get_if<Request>(&instance.what)) {
      job->requests.push_back(Reduced(*request));
      continue;
    }
    return PrepareChat(
        context, std::get<ChatRequest>(instance.what),
        [&context, job](std::variant<PreparedChat, ApiError> prepared) {
          if (const auto* error = std::get_if<ApiError>(&prepared)) {
            return RefuseRequest(context, *job->exchange, Errors(), *error);
          }
          job->requests.push_back(std::get<PreparedChat>(std::move(prepared)).request);
          PrepareNext(context, job);
        });
  }
  Launch(context, job);
}

}  // namespace

void Vertex(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<VertexRequest> parsed =
      Parse(http.body, {.limits = kLimits}, kVertexRequest, "struct VertexRequest");
  if (!Accept(context, "/vertex", "tgi", Errors(), parsed, *exchange)) return;
  VertexRequest& request = parsed.request;
  if (request.instances.empty()) {
    CountRefusal(context, *exchange,
                 {ApiErrorKind::kValidation, "`instances` must not be empty", "instances"});
    exchange->Respond(
        {422,
         "application/json",
         {},
         "{\"error\":\"Input validation error\",\"error_type\":\"Input validation error\"}"});
    return;
  }
  auto job = std::make_shared<VertexJob>();
  job->instances = std::move(request.instances);
  job->head = std::move(http.head);
  job->exchange = std::move(exchange);
  PrepareNext(context, std::move(job));
}

}  // namespace penstock::router::tgi
