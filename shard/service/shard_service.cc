#include "shard/service/shard_service.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "common/status.h"
#include "common/version.h"
#include "proto/protocol_version.h"
#include "shard/service/second_driver.h"

namespace penstock::shard {
namespace {

// Most tasks of one driver in the mailbox. They are a formation call or the opening of its stream,
// the queued plans, and a notice for each step that the device has finished. Each queued plan may
// begin a step that finishes while an earlier notice waits, and so may the steps that are in
// flight. The end of the stream has a place of its own.
constexpr std::size_t kDriverTasks = 1 + kMaxQueuedPlans + (kMaxQueuedPlans + kMaxStepsBegun + 1);

// A second driver never holds the lease at the same time. The other places are for calls that wait
// until the model is loaded.
constexpr std::size_t kMailboxCapacity = 16 + std::max(kDriverTasks, kMaxSecondCalls);

// Adapters that wait to be read.
constexpr std::size_t kMostAdapterCalls = 4;

// Begins `call`, runs `body` on the model thread and finishes the reactor with its status.
grpc::ServerUnaryReactor* RunFormationCall(ServiceState& state,
                                           grpc::CallbackServerContext* context, FormationCall call,
                                           Epoch epoch, std::function<absl::Status()> body) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (absl::Status begun = state.formation.Begin(call, epoch); !begun.ok()) {
    reactor->Finish(ToGrpc(begun));
    return reactor;
  }
  const bool posted = state.thread.Post([&state, call, reactor, body = std::move(body)] {
    const absl::Status status = body();
    state.formation.End(call, status.ok());
    reactor->Finish(ToGrpc(status));
  });
  if (!posted) {
    state.formation.End(call, false);
    reactor->Finish(ToGrpc(absl::UnavailableError("the shard is stopping")));
  }
  return reactor;
}

absl::Status Busy() { return absl::UnavailableError("the shard is busy or stopping"); }

}  // namespace

ServiceState::ServiceState(RankEngine& engine_in)
    : engine(engine_in),
      session(engine_in),
      thread(kMailboxCapacity),
      adapter_reader(kMostAdapterCalls),
      facts_(engine_in.Facts()) {}

v1::DescribeResponse ServiceState::Facts() const {
  std::lock_guard lock(facts_mutex_);
  return facts_;
}

void ServiceState::Loaded() {
  {
    std::lock_guard lock(facts_mutex_);
    facts_ = engine.Facts();
  }
  formation.Loaded();
}

void ServiceState::AdaptersChanged() {
  const std::lock_guard lock(facts_mutex_);
  facts_ = engine.Facts();
}

grpc::ServerUnaryReactor* ShardService::Describe(grpc::CallbackServerContext* context,
                                                 const v1::DescribeRequest*,
                                                 v1::DescribeResponse* response) {
  // `loaded` is read first, because the facts are complete before it becomes true.
  const bool loaded = state_.formation.loaded();
  *response = state_.Facts();
  response->set_protocol_version(proto::kProtocolVersion);
  response->set_version(std::string(Version()));
  response->set_loaded(loaded);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<v1::LoadProgress>* ShardService::WatchLoad(grpc::CallbackServerContext*,
                                                                    const v1::WatchLoadRequest*) {
  return state_.load.Watch();
}

grpc::ServerUnaryReactor* ShardService::Configure(grpc::CallbackServerContext* context,
                                                  const v1::ConfigureRequest* request,
                                                  v1::ConfigureResponse*) {
  return RunFormationCall(state_, context, FormationCall::kConfigure, Epoch(request->epoch()),
                          [this, request] { return state_.session.Configure(*request); });
}

grpc::ServerUnaryReactor* ShardService::Warmup(grpc::CallbackServerContext* context,
                                               const v1::WarmupRequest* request,
                                               v1::WarmupResponse* response) {
  return RunFormationCall(state_, context, FormationCall::kWarmup, Epoch(request->epoch()),
                          [this, response] {
                            auto report = state_.session.Warmup();
                            if (report.ok()) *response = *std::move(report);
                            return report.status();
                          });
}

grpc::ServerUnaryReactor* ShardService::Commit(grpc::CallbackServerContext* context,
                                               const v1::CommitRequest* request,
                                               v1::CommitResponse* response) {
  return RunFormationCall(
      state_, context, FormationCall::kCommit, Epoch(request->epoch()),
      [this, request, response]() -> absl::Status {
        PENSTOCK_ASSIGN_OR_RETURN(const KvBlocks blocks, BlocksOf(request->blocks()));
        auto bytes = state_.session.Commit({blocks, request->cells(), request->snapshots()});
        if (bytes.ok()) response->set_kv_cache_bytes(*bytes);
        return bytes.status();
      });
}

grpc::ServerBidiReactor<v1::StepPlan, v1::StepResult>* ShardService::Execute(
    grpc::CallbackServerContext*) {
  return StartExecute(state_);
}

grpc::ServerUnaryReactor* ShardService::Embed(grpc::CallbackServerContext* context,
                                              const v1::EmbedRequest* request,
                                              v1::EmbedResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool posted = state_.thread.Post([this, reactor, request, response] {
    reactor->Finish(ToGrpc(state_.session.Embed(*request, *response)));
  });
  if (!posted) reactor->Finish(ToGrpc(Busy()));
  return reactor;
}

grpc::ServerUnaryReactor* ShardService::LoadAdapter(grpc::CallbackServerContext* context,
                                                    const v1::LoadAdapterRequest* request,
                                                    v1::LoadAdapterResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!state_.formation.loaded()) {
    reactor->Finish(ToGrpc(absl::FailedPreconditionError("the model is not loaded yet")));
    return reactor;
  }
  const auto add = [this, reactor, request, response](ReadyAdapter ready) {
    v1::Adapter& adapter = *response->mutable_adapter();
    adapter.set_id(request->id());
    adapter.set_folder(ready.folder);
    adapter.set_rank(ready.rank);
    adapter.set_bytes(ready.bytes);
    state_.engine.AddAdapter(request->id(), std::move(ready));
    state_.AdaptersChanged();
    reactor->Finish(grpc::Status::OK);
  };
  const bool posted = state_.adapter_reader.Post([this, reactor, request, add] {
    auto ready = state_.engine.ReadAdapter(request->folder());
    if (!ready.ok()) return reactor->Finish(ToGrpc(ready.status()));
    if (state_.thread.Post([add, adapter = *ready] { add(adapter); })) return;
    reactor->Finish(ToGrpc(Busy()));
  });
  if (!posted) reactor->Finish(ToGrpc(Busy()));
  return reactor;
}

grpc::ServerUnaryReactor* ShardService::UnloadAdapter(grpc::CallbackServerContext* context,
                                                      const v1::UnloadAdapterRequest* request,
                                                      v1::UnloadAdapterResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool posted = state_.thread.Post([this, reactor, request] {
    state_.engine.RemoveAdapter(request->id());
    state_.AdaptersChanged();
    reactor->Finish(grpc::Status::OK);
  });
  if (!posted) reactor->Finish(ToGrpc(Busy()));
  return reactor;
}

}  // namespace penstock::shard
