#include "shard/tgi/tgi_service.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "common/fnv.h"
#include "common/status.h"
#include "common/traceparent.h"

namespace penstock::shard {
namespace {

namespace v3 = generate::v3;

// TGI's router sets no deadline. A call that does not reach all ranks fails after this time.
constexpr auto kMaxBarrierWait = std::chrono::seconds(30);
constexpr auto kMinMargin = std::chrono::milliseconds(50);

// The barrier gives up a little before the deadline of the call, so that the client gets a reason.
Time BarrierDeadline(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  Duration wait = kMaxBarrierWait;
  if (left < kMaxBarrierWait) {
    const Duration time = std::chrono::duration_cast<Duration>(left);
    wait = std::max(Duration(0), time - std::max<Duration>(kMinMargin, time / 10));
  }
  return SteadyNow() + wait;
}

// Equal on all ranks for the same call.
std::string KeyOf(const char* method, const google::protobuf::MessageLite& request) {
  const std::string bytes = request.SerializeAsString();
  return absl::StrCat(method, " ", bytes.size(), " ", Fnv1a(bytes));
}

// The trace context of the client. It may differ between ranks.
std::string_view TraceOf(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("traceparent");
  if (found == metadata.end()) return {};
  return TraceparentFields({found->second.data(), found->second.size()});
}

absl::Status NoGroup(std::uint64_t id) {
  return absl::InternalError("Batch ID " + std::to_string(id) + " not found in cache.");
}

// The limits that the router requested, or those of the model.
absl::Status AnswerWarmup(const v1::DescribeResponse& facts, const v3::WarmupRequest& request,
                          const TgiSession& session, v3::WarmupResponse& response) {
  const std::uint64_t capacity = session.capacity_tokens();
  const std::uint64_t most = std::min<std::uint64_t>(facts.max_position(), capacity);
  const std::uint64_t total = request.has_max_total_tokens() ? request.max_total_tokens() : most;
  if (total > facts.max_position()) {
    return BadValue("max_total_tokens", std::to_string(total),
                    "at most " + std::to_string(facts.max_position()) + ", the model's context");
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

void Describe(const v1::DescribeResponse& facts, v3::InfoResponse& response) {
  response.set_requires_padding(false);
  response.set_dtype("torch." + facts.dtype());
  response.set_device_type(facts.device());
  response.set_speculate(0);
  response.set_support_chunking(false);
  response.set_use_prefix_caching(false);
  response.set_attention_impl("paged");
  response.set_block_size(facts.block_size());
}

}  // namespace

grpc::ServerUnaryReactor* TgiService::Health(Context* context, const v3::HealthRequest*,
                                             v3::HealthResponse*) {
  Reactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(state_.formation.loaded()
                             ? absl::OkStatus()
                             : absl::UnavailableError("the model is loading")));
  return reactor;
}

// Answers after loading, because the model thread loads first.
grpc::ServerUnaryReactor* TgiService::Info(Context* context, const v3::InfoRequest*,
                                           v3::InfoResponse* response) {
  Reactor* reactor = context->DefaultReactor();
  const auto answer = [this, reactor, response] {
    Describe(state_.Facts(), *response);
    reactor->Finish(grpc::Status::OK);
  };
  if (state_.formation.loaded()) {
    answer();
  } else if (!state_.thread.Post(answer)) {
    reactor->Finish(ToGrpc(absl::UnavailableError("the shard is loading or stopping")));
  }
  return reactor;
}

grpc::ServerUnaryReactor* TgiService::ServiceDiscovery(Context* context,
                                                       const v3::ServiceDiscoveryRequest*,
                                                       v3::ServiceDiscoveryResponse* response) {
  for (const std::string& url : urls_) response->add_urls(url);
  Reactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* TgiService::Run(Context* context, const char* method,
                                          const google::protobuf::MessageLite& request,
                                          bool forms_group,
                                          std::function<absl::Status(TgiSession*)> body) {
  Reactor* reactor = context->DefaultReactor();
  TgiCall call;
  call.key = KeyOf(method, request);
  call.deadline = BarrierDeadline(*context);
  call.forms_group = forms_group;
  call.body = std::move(body);
  call.done = [reactor](const absl::Status& status) { reactor->Finish(ToGrpc(status)); };
  runner_.Start(std::move(call));
  return reactor;
}

grpc::ServerUnaryReactor* TgiService::ClearCache(Context* context,
                                                 const v3::ClearCacheRequest* request,
                                                 v3::ClearCacheResponse*) {
  return Run(context, "ClearCache", *request, false, [request](TgiSession* session) {
    if (session == nullptr) return absl::OkStatus();
    session->ClearCache(request->has_id() ? std::optional(request->id()) : std::nullopt);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TgiService::FilterBatch(Context* context,
                                                  const v3::FilterBatchRequest* request,
                                                  v3::FilterBatchResponse* response) {
  return Run(context, "FilterBatch", *request, false, [request, response](TgiSession* session) {
    if (session == nullptr) return NoGroup(request->batch_id());
    return session->FilterBatch(*request, *response);
  });
}

grpc::ServerUnaryReactor* TgiService::Warmup(Context* context, const v3::WarmupRequest* request,
                                             v3::WarmupResponse* response) {
  return Run(context, "Warmup", *request, true, [this, request, response](TgiSession* session) {
    runner_.SetMaxPrefillTokens(request->max_prefill_tokens());
    return AnswerWarmup(state_.Facts(), *request, *session, *response);
  });
}

grpc::ServerUnaryReactor* TgiService::Prefill(Context* context, const v3::PrefillRequest* request,
                                              v3::PrefillResponse* response) {
  return Run(context, "Prefill", *request, true, [context, request, response](TgiSession* session) {
    return session->Prefill(*request, *response, TraceOf(*context));
  });
}

grpc::ServerUnaryReactor* TgiService::Decode(Context* context, const v3::DecodeRequest* request,
                                             v3::DecodeResponse* response) {
  return Run(context, "Decode", *request, false, [request, response](TgiSession* session) {
    if (session != nullptr) return session->Decode(*request, *response);
    if (request->batches().empty()) return absl::InternalError("Must provide at least one batch");
    return NoGroup(request->batches(0).id());
  });
}

}  // namespace penstock::shard
