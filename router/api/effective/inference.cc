// POST /inference: its request, its answer, and its entry in the statistics.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "router/api/effective/dialect.h"
#include "router/api/effective/request.h"
#include "router/api/effective/stats_book.h"
#include "router/api/run.h"
#include "router/json/writer.h"

namespace penstock::router::effective {
namespace {

double Milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// How late the request came: the client's date compared with ours.
std::optional<Duration> Delayed(const Request& request, Time arrived) {
  if (!request.intended_arrival_ms) return std::nullopt;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto intended = std::chrono::milliseconds(static_cast<std::int64_t>(
      std::min<std::uint64_t>(*request.intended_arrival_ms, std::uint64_t{1} << 42)));
  const Duration since = std::chrono::duration_cast<Duration>(now - intended);
  return std::max(since - (SteadyNow() - arrived), Duration{0});
}

class Answer final : public AnswerWriter {
 public:
  Answer(std::shared_ptr<StatsBook> book, const Request& request, Time arrived,
         std::shared_ptr<Exchange> exchange)
      : book_(std::move(book)),
        exchange_(std::move(exchange)),
        prompt_(request.prompt),
        details_(request.details),
        era_(book_->Begin(arrived)) {
    finished_.arrived = arrived;
    finished_.delayed = Delayed(request, arrived);
  }
  ~Answer() override { CountFailure(); }  // the client left
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void Start(std::size_t, const GenerationStart& start) override { start_ = start; }

  void Token(std::size_t, GenerationToken token) override {
    const Time now = SteadyNow();
    if (last_token_) {
      finished_.gaps.push_back(now - *last_token_);
    } else {
      finished_.first_token = now - finished_.arrived;
    }
    last_token_ = now;
    if (details_) ids_.push_back(token.token.id);
  }

  void End(std::size_t, GenerationEnd end) override { end_ = std::move(end); }

  void AllEnded(Time ended) override {
    finished_.ended = ended;
    std::string body = "{";
    json::AppendMembers(body, "completion", prompt_ + end_.text);
    if (details_) AppendDetails(body);
    body += '}';
    finished_.tokens = end_.generated_tokens;
    // Count first, so that a client that has read the answer finds it counted.
    book_->End(era_, finished_);
    counted_ = true;
    exchange_->Respond(JsonResponse(std::move(body)));
  }

  void Failed(const ApiError& error) override {
    CountFailure();
    exchange_->Respond(Errors().Response(error));
  }

 private:
  void CountFailure() {
    if (!counted_) book_->Fail(era_);
    counted_ = true;
  }

  void AppendDetails(std::string& body) const {
    const double total = Milliseconds(finished_.ended - finished_.arrived);
    json::AppendMembers(
        body, "details",
        json::Object("request", start_.request.value(), "prompt_tokens", end_.prompt_tokens, "seed",
                     end_.seed, "queue_ms", Milliseconds(end_.timings.queue), "first_token_ms",
                     Milliseconds(finished_.first_token), "total_ms", total, "tokens",
                     json::Array(ids_, json::Append<TokenId>)));
  }

  const std::shared_ptr<StatsBook> book_;
  std::shared_ptr<Exchange> exchange_;
  const std::string prompt_;
  const bool details_;
  const std::uint64_t era_;
  bool counted_ = false;
  FinishedRequest finished_;
  std::optional<Time> last_token_;
  std::vector<TokenId> ids_;
  GenerationStart start_;
  GenerationEnd end_;
};

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
  const Parsed<Request> parsed = ParseRequest(http.body);
  if (!Accept(context, "/inference", "effective", Errors(), parsed, *exchange)) return;
  Launch(context, http.head, Errors(), {Lower(parsed.request, http.head)}, exchange,
         [&](std::vector<GenerationRequest>& candidates) {
           // The client's hint is ignored: the length is exact.
           candidates.front().predicted_tokens = parsed.request.num_tokens;
           return std::make_unique<Answer>(book, parsed.request, http.head.arrived, exchange);
         });
}

}  // namespace penstock::router::effective
