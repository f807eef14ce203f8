// The gRPC face of generate.v3: messages in and out, deadlines, one call of the runner each.
// Internal to shard/tgi.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generate/v3/generate.grpc.pb.h"
#include "shard/service/served_call.h"
#include "shard/service/shard_service.h"
#include "shard/tgi/tgi_runner.h"

namespace penstock::shard {

class TgiService final : public ServedService {
 public:
  // `urls`: the sockets of all ranks. `state` and `runner` outlive the service.
  TgiService(ServiceState& state, TgiRunner& runner, std::vector<std::string> urls)
      : state_(state), runner_(runner), urls_(std::move(urls)) {}

  grpc::Service& Registered() override { return service_; }
  void Listen(CallQueue& queue) override;

 private:
  using HealthCall = UnaryCall<generate::v3::HealthRequest, generate::v3::HealthResponse>;
  using InfoCall = UnaryCall<generate::v3::InfoRequest, generate::v3::InfoResponse>;
  using DiscoveryCall =
      UnaryCall<generate::v3::ServiceDiscoveryRequest, generate::v3::ServiceDiscoveryResponse>;
  using ClearCall = UnaryCall<generate::v3::ClearCacheRequest, generate::v3::ClearCacheResponse>;
  using FilterCall = UnaryCall<generate::v3::FilterBatchRequest, generate::v3::FilterBatchResponse>;
  using WarmupCall = UnaryCall<generate::v3::WarmupRequest, generate::v3::WarmupResponse>;
  using PrefillCall = UnaryCall<generate::v3::PrefillRequest, generate::v3::PrefillResponse>;
  using DecodeCall = UnaryCall<generate::v3::DecodeRequest, generate::v3::DecodeResponse>;

  void Health(HealthCall& call);
  void Info(InfoCall& call);
  void ServiceDiscovery(DiscoveryCall& call);
  void ClearCache(ClearCall& call);
  void FilterBatch(FilterCall& call);
  void Warmup(WarmupCall& call);
  void Prefill(PrefillCall& call);
  void Decode(DecodeCall& call);

  // Runs `body` with the session. `request` is what makes the call equal on all ranks.
  void Run(AnsweredCall& call, const char* method, const google::protobuf::MessageLite& request,
           bool forms_group, std::function<absl::Status(TgiSession*)> body);

  ServiceState& state_;
  TgiRunner& runner_;
  const std::vector<std::string> urls_;
  generate::v3::TextGenerationService::AsyncService service_;
};

}  // namespace penstock::shard
