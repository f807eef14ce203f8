#include "tests/fuzz/targets/exchanges.h"

#include <boost/json/parse.hpp>
#include <utility>
#include <vector>

#include "router/http/wire.h"
#include "tests/fuzz/target.h"

namespace penstock::fuzz {

using namespace router;

namespace {

bool IsJson(std::string_view text) {
  boost::system::error_code ec;
  boost::json::parse_options options;
  options.max_depth = 1000;
  boost::json::parse(boost::json::string_view(text.data(), text.size()), ec, {}, options);
  return !ec;
}

void CheckResponse(const HttpResponse& response) {
  Require(response.status >= 200 && response.status < 600, "a status of HTTP");
  const bool json = response.content_type == kJson;
  Require(!json || IsJson(response.body), "a body of JSON is JSON");
  const std::string head = WriteHead(response, {.request_id = "fuzz"});
  Require(head.ends_with("\r\n\r\n"), "a head ends with an empty line");
  Require(head.find("\r\n\r\n") + 4 == head.size(), "a head has one empty line");
}

// Keeps what the application answers.
class Kept final : public Exchange {
 public:
  // Lets go of what the application gave, which may hold this. The client of an open answer leaves.
  void Release() {
    const auto closed = std::exchange(closed_, nullptr);
    if (closed && !finished_) closed(CloseReason::kClientGone);
  }
  void AddHeaders(std::vector<Header>) override {}
  void Respond(HttpResponse response) override {
    Require(!answered_, "one answer");
    answered_ = finished_ = true;
    CheckResponse(response);
  }
  void StartStream(HttpResponse head) override {
    Require(!answered_, "one answer");
    answered_ = true;
    CheckResponse(head);
  }
  bool Write(std::string_view events) override {
    Require(answered_ && !finished_, "events between the begin and the end of a stream");
    Require(!events.empty(), "an event has bytes");
    return true;
  }
  void Finish() override {
    Require(answered_ && !finished_, "a stream ends once");
    finished_ = true;
  }
  void OnClose(std::function<void(CloseReason)> callback) override {
    closed_ = std::move(callback);
  }
  bool finished() const { return finished_; }

 private:
  bool answered_ = false;
  bool finished_ = false;
  std::function<void(CloseReason)> closed_;
};

ModelFacts Facts(Server server) {
  ModelFacts facts{.model_id = "org/demo",
                   .served_name = "demo",
                   .dtype = "float32",
                   .device = "cpu",
                   .max_input_tokens = 128,
                   .max_total_tokens = 256,
                   .max_batch_total_tokens = 4096,
                   .vocabulary = 1000,
                   .has_chat_template = true,
                   .template_has_tools = true,
                   .has_grammar = true,
                   .has_watermark = true,
                   .max_candidates = 8};
  if (server == Server::kVectors) {
    VectorFacts vectors;
    vectors.pooling = "mean";
    vectors.outputs = 4;
    vectors.any_size = true;
    vectors.prompts = {{"query", "query: "}};
    facts.vectors = vectors;
  }
  return facts;
}

ApiOptions Options() {
  ApiOptions options;
  options.answer_format = answer::FindFormat("hermes");
  options.trust_request_chat_template = true;
  return options;
}

}  // namespace

Exchanges::Exchanges(Server server)
    : context_(Options(),
               MakeDialects({.tgi_only = server == Server::kTgi,
                             .response_store = {.entries = 4, .bytes = 4096}}),
               engine_, metrics_),
      api_(context_) {
  engine_.facts = Facts(server);
}

void Exchanges::Answer(RequestHead head, std::string body, std::uint64_t script) {
  RouteMatch match = api_.Match(head);
  if (match.refusal) {
    CheckResponse(*match.refusal);
    return;
  }
  head.tenant = match.tenant;
  auto kept = std::make_shared<Kept>();
  match.handle(HttpRequest{std::move(head), std::move(body)}, kept);
  // A live view of the steps is the one stream that has no end.
  const bool endless = match.route.ends_with("/events");
  engine_.Play(script);
  Require(kept->finished() || endless, "a request is answered");
  kept->Release();
}

void Exchanges::Refuse(const RequestHead& head, const HttpFailure& failure) const {
  CheckResponse(api_.Refuse(head, failure));
}

}  // namespace penstock::fuzz
