#include "shard/tgi/tgi_service.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "common/traceparent.h"
#include "shard/service/grpc_status.h"

namespace penstock::shard {
namespace {

namespace v3 = generate::v3;

// TGI's router sets no deadline; a call that does not come to all ranks ends after this.
constexpr auto kLongestPatience = std::chrono::seconds(30);
constexpr auto kLeastMargin = std::chrono::milliseconds(50);

// The ranks must have met a little before the caller gives up, so that it hears why they did not.
Time MeetingDeadline(const grpc::ServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  Duration patience = kLongestPatience;
  if (left < kLongestPatience) {
    const Duration time = std::chrono::duration_cast<Duration>(left);
    patience = std::max(Duration(0), time - std::max<Duration>(kLeastMargin, time / 10));
  }
  return SteadyNow() + patience;
}

// FNV-1a: the same on every rank, whatever built it.
std::string KeyOf(const char* method, const google::protobuf::MessageLite& request) {
  const std::string bytes = request.SerializeAsString();
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  }
  return std::string(method) + " " + std::to_string(bytes.size()) + " " + std::to_string(hash);
}

// Of the client's span; ranks may be told different ones.
std::string_view TraceOf(const grpc::ServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("traceparent");
  if (found == metadata.end()) return {};
  return TraceparentFields({found->second.data(), found->second.size()});
}

absl::Status NoGroup(std::uint64_t id) {
  return absl::InternalError("Batch ID " + std::to_string(id) + " not found in cache.");
}

// The limits that the router asked for, or the model's own.
absl::Status AnswerWarmup(const EngineFacts& facts, const v3::WarmupRequest& request,
                          const TgiSession& session, v3::WarmupResponse& response) {
  const std::uint64_t capacity = session.capacity_tokens();
  const std::uint64_t most = std::min<std::uint64_t>(facts.max_position, capacity);
  const std::uint64_t total = request.has_max_total_tokens() ? request.max_total_tokens() : most;
  if (total > facts.max_position) {
    return BadValue("max_total_tokens", std::to_string(total),
                    "at most " + std::to_string(facts.max_position) + ", the model's context");
  }
  if (total > capacity) {
    return absl::ResourceExhaustedError(
        "Not enough memory to handle `max_total_tokens=" + std::to_string(total) +
        "`: there is room for " + std::to_string(capacity));
  }
  response.set_max_supported_total_tokens(static_cast<std::uint32_t>(capacity));
  response.set_max_total_tokens(static_cast<std::uint32_t>(total));
  response.set_max_input_tokens(request.has_max_input_tokens()
                                    ? request.max_input_tokens()
                                    : static_cast<std::uint32_t>(total - 1));
  return absl::OkStatus();
}

void Describe(const EngineFacts& facts, v3::InfoResponse& response) {
  response.set_requires_padding(false);
  response.set_dtype("torch." + facts.dtype);
  response.set_device_type(facts.device);
  response.set_speculate(0);
  response.set_support_chunking(false);
  response.set_use_prefix_caching(false);
  response.set_attention_impl("paged");
  response.set_block_size(facts.block_size);
}

}  // namespace

void TgiService::Listen(CallQueue& queue) {
  using Service = v3::TextGenerationService::AsyncService;
  ServeUnary(service_, &Service::RequestHealth, queue, [this](auto& call) { Health(call); });
  ServeUnary(service_, &Service::RequestInfo, queue, [this](auto& call) { Info(call); });
  ServeUnary(service_, &Service::RequestServiceDiscovery, queue,
             [this](auto& call) { ServiceDiscovery(call); });
  ServeUnary(service_, &Service::RequestClearCache, queue,
             [this](auto& call) { ClearCache(call); });
  ServeUnary(service_, &Service::RequestFilterBatch, queue,
             [this](auto& call) { FilterBatch(call); });
  ServeUnary(service_, &Service::RequestWarmup, queue, [this](auto& call) { Warmup(call); });
  ServeUnary(service_, &Service::RequestPrefill, queue, [this](auto& call) { Prefill(call); });
  ServeUnary(service_, &Service::RequestDecode, queue, [this](auto& call) { Decode(call); });
}

void TgiService::Health(HealthCall& call) {
  call.Finish(ToGrpc(state_.formation.loaded() ? absl::OkStatus()
                                               : absl::UnavailableError("the model is loading")));
}

// Comes after loading: the model thread has it first.
void TgiService::Info(InfoCall& call) {
  const auto answer = [this, &call] {
    Describe(*state_.Facts(), call.response());
    call.Finish(grpc::Status::OK);
  };
  if (state_.formation.loaded()) {
    answer();
  } else if (!state_.thread.Post(answer)) {
    call.Finish(ToGrpc(absl::UnavailableError("the shard is loading, or stopping")));
  }
}

void TgiService::ServiceDiscovery(DiscoveryCall& call) {
  for (const std::string& url : urls_) call.response().add_urls(url);
  call.Finish(grpc::Status::OK);
}

void TgiService::Run(AnsweredCall& answer, const char* method,
                     const google::protobuf::MessageLite& request, bool forms_group,
                     std::function<absl::Status(TgiSession*)> body) {
  TgiCall call;
  call.key = KeyOf(method, request);
  call.deadline = MeetingDeadline(answer.context());
  call.forms_group = forms_group;
  call.body = std::move(body);
  call.done = [&answer](const absl::Status& status) { answer.Finish(ToGrpc(status)); };
  runner_.Start(std::move(call));
}

void TgiService::ClearCache(ClearCall& call) {
  Run(call, "ClearCache", call.request(), false, [&request = call.request()](TgiSession* session) {
    if (session == nullptr) return absl::OkStatus();
    session->ClearCache(request.has_id() ? std::optional(request.id()) : std::nullopt);
    return absl::OkStatus();
  });
}

void TgiService::FilterBatch(FilterCall& call) {
  Run(call, "FilterBatch", call.request(), false, [&call](TgiSession* session) {
    if (session == nullptr) return NoGroup(call.request().batch_id());
    return session->FilterBatch(call.request(), call.response());
  });
}

void TgiService::Warmup(WarmupCall& call) {
  Run(call, "Warmup", call.request(), true, [this, &call](TgiSession* session) {
    runner_.SetMaxPrefillTokens(call.request().max_prefill_tokens());
    return AnswerWarmup(*state_.Facts(), call.request(), *session, call.response());
  });
}

void TgiService::Prefill(PrefillCall& call) {
  Run(call, "Prefill", call.request(), true, [&call](TgiSession* session) {
    return session->Prefill(call.request(), call.response(), TraceOf(call.context()));
  });
}

void TgiService::Decode(DecodeCall& call) {
  Run(call, "Decode", call.request(), false, [&call](TgiSession* session) {
    const v3::DecodeRequest& request = call.request();
    if (session != nullptr) return session->Decode(request, call.response());
    if (request.batches().empty()) return absl::InternalError("Must provide at least one batch");
    return NoGroup(request.batches(0).id());
  });
}

}  // namespace penstock::shard
