// The gRPC service of generate.v3: messages, deadlines, and one TgiCall for each call.
// Internal to shard/tgi.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generate/v3/generate.grpc.pb.h"
#include "shard/service/shard_service.h"
#include "shard/tgi/tgi_call_runner.h"

namespace penstock::shard {

class TgiService final : public generate::v3::TextGenerationService::CallbackService {
 public:
  // `urls`: the sockets of all ranks. `state` and `runner` outlive the service.
  TgiService(ServiceState& state, TgiCallRunner& runner, std::vector<std::string> urls)
      : state_(state), runner_(runner), urls_(std::move(urls)) {}

 private:
  using Reactor = grpc::ServerUnaryReactor;
  using Context = grpc::CallbackServerContext;

  Reactor* Health(Context* context, const generate::v3::HealthRequest* request,
                  generate::v3::HealthResponse* response) override;
  Reactor* Info(Context* context, const generate::v3::InfoRequest* request,
                generate::v3::InfoResponse* response) override;
  Reactor* ServiceDiscovery(Context* context, const generate::v3::ServiceDiscoveryRequest* request,
                            generate::v3::ServiceDiscoveryResponse* response) override;
  Reactor* ClearCache(Context* context, const generate::v3::ClearCacheRequest* request,
                      generate::v3::ClearCacheResponse* response) override;
  Reactor* FilterBatch(Context* context, const generate::v3::FilterBatchRequest* request,
                       generate::v3::FilterBatchResponse* response) override;
  Reactor* Warmup(Context* context, const generate::v3::WarmupRequest* request,
                  generate::v3::WarmupResponse* response) override;
  Reactor* Prefill(Context* context, const generate::v3::PrefillRequest* request,
                   generate::v3::PrefillResponse* response) override;
  Reactor* Decode(Context* context, const generate::v3::DecodeRequest* request,
                  generate::v3::DecodeResponse* response) override;

  // Runs `body` with the session. Ranks recognise the same call by `method` and `request`.
  Reactor* Run(Context* context, const char* method, const google::protobuf::MessageLite& request,
               bool forms_group, std::function<absl::Status(TgiSession*)> body);

  ServiceState& state_;
  TgiCallRunner& runner_;
  const std::vector<std::string> urls_;
};

}  // namespace penstock::shard
