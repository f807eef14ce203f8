// The gRPC service penstock.v1.Shard. gRPC threads convert messages, check the order of calls and
// post to the model thread; they never wait. Internal to shard/service: users start a ShardServer.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <mutex>

#include "common/status.h"
#include "penstock/v1/shard.grpc.pb.h"
#include "shard/service/formation.h"
#include "shard/service/group_session.h"
#include "shard/service/load_monitor.h"
#include "shard/service/model_thread.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

// The state that the calls of one rank share. Outlives every reactor.
struct ServiceState {
  explicit ServiceState(RankEngine& engine_in);

  // The current facts. Until the model is loaded, only what Describe needs before that.
  v1::DescribeResponse Facts() const;
  // The engine has loaded its model. Model thread.
  void Loaded();
  // The engine has other adapters. Model thread.
  void AdaptersChanged();

  RankEngine& engine;
  Formation formation;
  LoadMonitor load;
  GroupSession session;  // model thread only
  ModelThread thread;
  ModelThread adapter_reader;  // reads adapters, one after the other; posts to `thread`

 private:
  mutable std::mutex facts_mutex_;
  v1::DescribeResponse facts_;
};

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), Message(status)};
}

// Most plans of a stream that wait for the model thread.
inline constexpr std::uint32_t kMaxQueuedPlans = 8;

// A new Execute stream; see execute_reactor.cc. The reactor owns itself until gRPC and the model
// thread no longer use it. `state` outlives it.
grpc::ServerBidiReactor<v1::StepPlan, v1::StepResult>* StartExecute(ServiceState& state);

class ShardService final : public v1::Shard::CallbackService {
 public:
  explicit ShardService(ServiceState& state) : state_(state) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;
  grpc::ServerWriteReactor<v1::LoadProgress>* WatchLoad(
      grpc::CallbackServerContext* context, const v1::WatchLoadRequest* request) override;
  grpc::ServerUnaryReactor* Configure(grpc::CallbackServerContext* context,
                                      const v1::ConfigureRequest* request,
                                      v1::ConfigureResponse* response) override;
  grpc::ServerUnaryReactor* Warmup(grpc::CallbackServerContext* context,
                                   const v1::WarmupRequest* request,
                                   v1::WarmupResponse* response) override;
  grpc::ServerUnaryReactor* Commit(grpc::CallbackServerContext* context,
                                   const v1::CommitRequest* request,
                                   v1::CommitResponse* response) override;
  grpc::ServerBidiReactor<v1::StepPlan, v1::StepResult>* Execute(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* context,
                                  const v1::EmbedRequest* request,
                                  v1::EmbedResponse* response) override;
  grpc::ServerUnaryReactor* LoadAdapter(grpc::CallbackServerContext* context,
                                        const v1::LoadAdapterRequest* request,
                                        v1::LoadAdapterResponse* response) override;
  grpc::ServerUnaryReactor* UnloadAdapter(grpc::CallbackServerContext* context,
                                          const v1::UnloadAdapterRequest* request,
                                          v1::UnloadAdapterResponse* response) override;

 private:
  ServiceState& state_;
};

}  // namespace penstock::shard
