#include "shard/service/shard_service.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "common/version.h"
#include "proto/protocol_version.h"
#include "shard/service/execute_reactor.h"
#include "shard/service/grpc_status.h"
#include "shard/service/second_driver.h"
#include "shard/service/watch_reactor.h"

namespace penstock::shard {
namespace {

// Most tasks of one driver in the mailbox. They are a formation call or the opening of its stream,
// the queued plans, and a notice for each step that the device has finished. Each queued plan may
// begin a step that finishes while an earlier notice waits, and so may the steps that are in
// flight. The end of the stream has a place of its own.
constexpr std::size_t kDriverTasks = 1 + kMaxQueuedPlans + (kMaxQueuedPlans + kMaxStepsBegun + 1);

// A second driver never holds the lease at the same time. The other places are for calls that wait
// until the model is loaded.
constexpr std::size_t kMailboxCapacity = 8 + std::max(kDriverTasks, kMaxSecondCalls);

void ToProto(const EngineFacts& facts, bool loaded, v1::DescribeResponse& wire) {
  wire.set_protocol_version(proto::kProtocolVersion);
  wire.set_version(std::string(Version()));
  wire.set_loaded(loaded);
  wire.set_model_id(facts.model_id);
  wire.set_model_type(facts.model_type);
  wire.set_dtype(facts.dtype);
  wire.set_device(facts.device);
  wire.set_backend(facts.backend);
  wire.set_rank(facts.rank);
  wire.set_world_size(facts.world_size);
  wire.set_vocabulary(facts.vocabulary);
  for (TokenId eos : facts.eos_token_ids) wire.add_eos_token_ids(eos);
  wire.set_bos_token_id(facts.bos_token_id.value_or(-1));
  wire.set_max_position(facts.max_position);
  for (const KvGroupFacts& group : facts.kv_groups) {
    v1::KvGroup& to = *wire.add_kv_groups();
    to.set_bytes_per_token(group.bytes_per_token);
    to.set_layers(group.layers);
    to.set_window(group.window);
  }
  wire.set_block_size(facts.block_size);
  wire.set_attention(facts.padded_attention ? v1::ATTENTION_LAYOUT_PADDED
                                            : v1::ATTENTION_LAYOUT_RAGGED);
  for (const std::string& capability : facts.capabilities) wire.add_capabilities(capability);
  wire.set_fingerprint(facts.fingerprint);
  wire.set_parameters(facts.parameters);
  wire.set_weight_bytes(facts.weight_bytes);
}

GroupSetup FromProto(const v1::ConfigureRequest& wire) {
  GroupSetup setup;
  setup.epoch = Epoch(wire.epoch());
  setup.world_size = wire.world_size();
  setup.rank = wire.rank();
  setup.rendezvous = wire.rendezvous();
  setup.fingerprint = wire.fingerprint();
  setup.limits.max_step_tokens = wire.limits().max_step_tokens();
  setup.limits.max_sequences = wire.limits().max_sequences();
  setup.limits.max_sequence_length = wire.limits().max_sequence_length();
  setup.limits.kv_cache_bytes = wire.limits().kv_cache_bytes();
  setup.limits.max_candidates = wire.limits().max_candidates();
  setup.limits.late_masks = wire.limits().late_masks();
  // Absent: 1, no drafts.
  setup.limits.max_decode_rows = std::max(1u, wire.limits().max_decode_rows());
  return setup;
}

void ToProto(const WarmupReport& report, v1::WarmupResponse& wire) {
  wire.set_blocks(report.blocks);
  wire.set_cells(report.cells);
  wire.set_peak_memory_bytes(report.peak_memory_bytes);
  for (const StepTimeSample& sample : report.step_times) {
    v1::StepTime& to = *wire.add_step_times();
    to.set_prefill_tokens(sample.prefill_tokens);
    to.set_decode_rows(sample.decode_rows);
    to.set_context_tokens(sample.context_tokens);
    to.set_nanoseconds(static_cast<std::uint64_t>(sample.time.count()));
  }
}

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

}  // namespace

ServiceState::ServiceState(RankEngine& engine_in)
    : engine(engine_in),
      session(engine_in),
      thread(kMailboxCapacity),
      facts_(std::make_shared<const EngineFacts>(engine_in.Facts())) {}

std::shared_ptr<const EngineFacts> ServiceState::Facts() const {
  std::lock_guard lock(facts_mutex_);
  return facts_;
}

void ServiceState::SetFacts(EngineFacts facts) {
  std::lock_guard lock(facts_mutex_);
  facts_ = std::make_shared<const EngineFacts>(std::move(facts));
}

grpc::ServerUnaryReactor* ShardService::Describe(grpc::CallbackServerContext* context,
                                                 const v1::DescribeRequest*,
                                                 v1::DescribeResponse* response) {
  // `loaded` is read first, because the facts are complete before it becomes true.
  const bool loaded = state_.formation.loaded();
  ToProto(*state_.Facts(), loaded, *response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<v1::LoadProgress>* ShardService::WatchLoad(grpc::CallbackServerContext*,
                                                                    const v1::WatchLoadRequest*) {
  return StartWatchLoad(state_.load);
}

grpc::ServerUnaryReactor* ShardService::Configure(grpc::CallbackServerContext* context,
                                                  const v1::ConfigureRequest* request,
                                                  v1::ConfigureResponse*) {
  return RunFormationCall(
      state_, context, FormationCall::kConfigure, Epoch(request->epoch()),
      [this, request] { return state_.session.Configure(FromProto(*request)); });
}

grpc::ServerUnaryReactor* ShardService::Warmup(grpc::CallbackServerContext* context,
                                               const v1::WarmupRequest* request,
                                               v1::WarmupResponse* response) {
  return RunFormationCall(state_, context, FormationCall::kWarmup, Epoch(request->epoch()),
                          [this, response] {
                            auto report = state_.session.Warmup();
                            if (report.ok()) ToProto(*report, *response);
                            return report.status();
                          });
}

grpc::ServerUnaryReactor* ShardService::Commit(grpc::CallbackServerContext* context,
                                               const v1::CommitRequest* request,
                                               v1::CommitResponse* response) {
  return RunFormationCall(
      state_, context, FormationCall::kCommit, Epoch(request->epoch()), [this, request, response] {
        auto bytes = state_.session.Commit({request->blocks(), request->cells()});
        if (bytes.ok()) response->set_kv_cache_bytes(*bytes);
        return bytes.status();
      });
}

grpc::ServerBidiReactor<v1::StepPlan, v1::StepResult>* ShardService::Execute(
    grpc::CallbackServerContext*) {
  return StartExecute(state_);
}

}  // namespace penstock::shard
