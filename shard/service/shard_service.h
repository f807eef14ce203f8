// The gRPC service penstock.v1.Shard. gRPC threads convert messages, check the order of calls and
// post to the model thread; they never wait. Internal to shard/service: users start a ShardServer.
#pragma once

#include <memory>
#include <mutex>

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
  std::shared_ptr<const EngineFacts> Facts() const;
  void SetFacts(EngineFacts facts);

  RankEngine& engine;
  Formation formation;
  LoadMonitor load;
  GroupSession session;  // model thread only
  ModelThread thread;

 private:
  mutable std::mutex facts_mutex_;
  std::shared_ptr<const EngineFacts> facts_;
};

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

 private:
  ServiceState& state_;
};

}  // namespace penstock::shard
