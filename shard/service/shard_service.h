// penstock.v1.Shard. The thread of the calls only converts, checks their order and posts to the
// model thread; it never waits. Internal to shard/service: users start a
// ShardServer.
#pragma once

#include <memory>
#include <mutex>

#include "penstock/v1/shard.grpc.pb.h"
#include "shard/service/formation.h"
#include "shard/service/group_session.h"
#include "shard/service/load_monitor.h"
#include "shard/service/model_thread.h"
#include "shard/service/rank_engine.h"
#include "shard/service/served_call.h"

namespace penstock::shard {

// What the calls of one rank share. Outlives every reactor.
struct ServiceState {
  explicit ServiceState(RankEngine& engine_in);

  // Facts as of now: those of before Load until loading ended.
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

class ShardService final : public ServedService {
 public:
  explicit ShardService(ServiceState& state) : state_(state) {}

  grpc::Service& Registered() override { return service_; }
  void Listen(CallQueue& queue) override;

 private:
  using DescribeCall = UnaryCall<v1::DescribeRequest, v1::DescribeResponse>;
  using ConfigureCall = UnaryCall<v1::ConfigureRequest, v1::ConfigureResponse>;
  using WarmupCall = UnaryCall<v1::WarmupRequest, v1::WarmupResponse>;
  using CommitCall = UnaryCall<v1::CommitRequest, v1::CommitResponse>;

  void Describe(DescribeCall& call);
  void Configure(ConfigureCall& call);
  void Warmup(WarmupCall& call);
  void Commit(CommitCall& call);

  ServiceState& state_;
  v1::Shard::AsyncService service_;
};

}  // namespace penstock::shard
