#include <string>
#include <utility>
#include <vector>

#include "router/api/effective/answer.h"
#include "router/api/effective/dialect.h"
#include "router/api/effective/request.h"
#include "router/api/hints.h"
#include "router/api/run.h"

namespace penstock::router::effective {
namespace {

// Samples from the whole softmax at temperature 1, as the original does. Each request has its own
// seed, so its tokens do not depend on the other requests in the batch.
GenerationRequest Lower(const Request& request, const RequestHead& head) {
  GenerationRequest lowered;
  lowered.client_id = head.request_id;
  lowered.prompt = request.prompt;
  lowered.max_new_tokens = request.num_tokens;
  lowered.exact_length = true;
  lowered.ignore_eos = true;
  lowered.sampling.do_sample = true;
  lowered.asked_sampling = true;
  lowered.seed = request.seed;
  return lowered;
}

}  // namespace

void Inference(ApiContext& context, const std::shared_ptr<StatsBook>& book, const HttpRequest& http,
               std::shared_ptr<Exchange> exchange) {
  context.metrics.requests().Arrived("/inference");
  const auto refuse = [&](const ApiError& error) {
    RefuseRequest(context, *exchange, Errors(), error);
  };
  const Parsed parsed = ParseRequest(http.body);
  context.metrics.requests().UnknownKeys("effective", parsed.unknown_keys);
  if (parsed.error) return refuse(*parsed.error);
  RunPlan plan;
  plan.candidates.push_back(Lower(parsed.request, http.head));
  if (const auto error = ApplyHints(http.head, plan.candidates)) return refuse(*error);
  // The client's hint is ignored: the length is exact.
  plan.candidates.front().predicted_tokens = parsed.request.num_tokens;
  auto permit = context.permits.Take(1);
  if (!permit) return refuse(TooManyRequests(context.options.max_concurrent_requests));
  plan.errors = &Errors();
  plan.permit = *std::move(permit);
  plan.arrived = http.head.arrived;
  plan.writer = MakeAnswer(book, parsed.request, http.head.arrived, exchange);
  StartRun(context, std::move(exchange), std::move(plan));
}

}  // namespace penstock::router::effective
