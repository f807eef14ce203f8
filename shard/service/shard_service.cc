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

// What a driver has there at most: a formation call or its opening, the plans, and the words of
// steps that are done. A word waits behind kMaxQueuedPlans plans at most, each of which may begin a
// step whose word comes meanwhile, as may those of the steps that were begun. (Its end has a place
// of its own.)
constexpr std::size_t kDriverTasks = 1 + kMaxQueuedPlans + (kMaxQueuedPlans + kMaxStepsBegun + 1);

// That, or the calls of a second driver, who never has the seat as well. The rest is room for
// questions that wait for the end of loading.
constexpr std::size_t kInboxCapacity = 8 + std::max(kDriverTasks, kMaxSecondCalls);

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
  // Absent = 1: no drafts.
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

// Begins `call`, runs `body` on the model thread and answers with its status.
void RunFormationCall(ServiceState& state, AnsweredCall& answer, FormationCall call, Epoch epoch,
                      std::function<absl::Status()> body) {
  if (absl::Status begun = state.formation.Begin(call, epoch); !begun.ok()) {
    return answer.Finish(ToGrpc(begun));
  }
  const bool posted = state.thread.Post([&state, call, &answer, body = std::move(body)] {
    const absl::Status status = body();
    state.formation.End(call, status.ok());
    answer.Finish(ToGrpc(status));
  });
  if (!posted) {
    state.formation.End(call, false);
    answer.Finish(ToGrpc(absl::UnavailableError("the shard is stopping")));
  }
}

}  // namespace

ServiceState::ServiceState(RankEngine& engine_in)
    : engine(engine_in),
      session(engine_in),
      thread(kInboxCapacity),
      facts_(std::make_shared<const EngineFacts>(engine_in.Facts())) {}

std::shared_ptr<const EngineFacts> ServiceState::Facts() const {
  std::lock_guard lock(facts_mutex_);
  return facts_;
}

void ServiceState::SetFacts(EngineFacts facts) {
  std::lock_guard lock(facts_mutex_);
  facts_ = std::make_shared<const EngineFacts>(std::move(facts));
}

void ShardService::Listen(CallQueue& queue) {
  using Service = v1::Shard::AsyncService;
  using WatchCall = WriteCall<v1::WatchLoadRequest, v1::LoadProgress>;
  using ExecuteCall = BidiCall<v1::StepPlan, v1::StepResult>;
  ServeUnary(service_, &Service::RequestDescribe, queue, [this](auto& call) { Describe(call); });
  ServeUnary(service_, &Service::RequestConfigure, queue, [this](auto& call) { Configure(call); });
  ServeUnary(service_, &Service::RequestWarmup, queue, [this](auto& call) { Warmup(call); });
  ServeUnary(service_, &Service::RequestCommit, queue, [this](auto& call) { Commit(call); });
  Serve<WatchCall>(service_, &Service::RequestWatchLoad, queue,
                   [this] { return MakeWatchLoad(state_.load); });
  Serve<ExecuteCall>(service_, &Service::RequestExecute, queue,
                     [this] { return MakeExecute(state_); });
}

void ShardService::Describe(DescribeCall& call) {
  // `loaded` is read first: facts are complete before it turns true.
  const bool loaded = state_.formation.loaded();
  ToProto(*state_.Facts(), loaded, call.response());
  call.Finish(grpc::Status::OK);
}

void ShardService::Configure(ConfigureCall& call) {
  RunFormationCall(state_, call, FormationCall::kConfigure, Epoch(call.request().epoch()),
                   [this, &call] { return state_.session.Configure(FromProto(call.request())); });
}

void ShardService::Warmup(WarmupCall& call) {
  RunFormationCall(state_, call, FormationCall::kWarmup, Epoch(call.request().epoch()),
                   [this, &call] {
                     auto report = state_.session.Warmup();
                     if (report.ok()) ToProto(*report, call.response());
                     return report.status();
                   });
}

void ShardService::Commit(CommitCall& call) {
  const Epoch epoch(call.request().epoch());
  RunFormationCall(state_, call, FormationCall::kCommit, epoch, [this, &call] {
    const v1::CommitRequest& request = call.request();
    auto bytes = state_.session.Commit({request.blocks(), request.cells()});
    if (bytes.ok()) call.response().set_kv_cache_bytes(*bytes);
    return bytes.status();
  });
}

}  // namespace penstock::shard
