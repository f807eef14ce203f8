#include "router/dispatch/group_link.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "common/fnv.h"
#include "common/socket_names.h"
#include "common/status.h"
#include "penstock/v1/shard.pb.h"
#include "router/metrics/metrics.h"

namespace penstock::router {
namespace {

constexpr auto kMostLifePause = std::chrono::milliseconds(1'000);
constexpr auto kCloseGrace = std::chrono::milliseconds(500);
constexpr std::uint32_t kCpuStepTokens = 512;
// Each running sequence may have made two, and as many prefixes wait for a next turn.
constexpr std::uint32_t kSnapshotsPerSlot = 4;
constexpr std::uint32_t kCudaStepTokens = 2048;

// As the launcher calls it. The group is in the prefix of messages.
std::string RankName(std::uint32_t rank) { return ShardName(std::nullopt, rank); }

absl::Status CheckAgreement(const ShardFacts& first, const ShardFacts& other, std::size_t world) {
  const std::string who = RankName(other.rank);
  if (other.world_size != world) {
    return BadValue(who + ".world_size", std::to_string(other.world_size), std::to_string(world));
  }
  if (other.fingerprint != first.fingerprint) {
    return BadValue(who + ".fingerprint", other.fingerprint,
                    first.fingerprint + " as on " + RankName(first.rank));
  }
  return absl::OkStatus();
}

// KV groups as the scheduler knows them: one of all positions, then perhaps one with a window.
absl::Status CheckKvGroups(const ShardFacts& facts) {
  const std::vector<KvGroupFacts>& groups = facts.kv_groups;
  const bool one = groups.size() == 1 && groups[0].window == 0;
  const bool two = groups.size() == 2 && groups[0].window == 0 && groups[1].window > 0;
  if (one || two) return absl::OkStatus();
  return BadValue(RankName(facts.rank) + ".kv_groups", std::to_string(groups.size()) + " groups",
                  "one without a window, or one without and one with a window");
}

absl::Status CheckBlockCounts(const std::vector<ShardWarmup>& warmups, std::size_t groups) {
  for (std::size_t rank = 0; rank < warmups.size(); ++rank) {
    if (warmups[rank].pool.blocks.size() == groups) continue;
    return BadValue(RankName(static_cast<std::uint32_t>(rank)) + ".blocks",
                    std::to_string(warmups[rank].pool.blocks.size()) + " numbers",
                    "one for each of " + std::to_string(groups) + " KV groups");
  }
  return absl::OkStatus();
}

// An encoder computes a text in one step. `asked`: --max-step-tokens; 0 = auto.
void FitWholeTexts(std::uint32_t asked, GroupCapacity& capacity) {
  std::uint32_t& step = capacity.max_step_tokens;
  if (asked == 0) step = std::max(step, capacity.max_sequence_length);
  capacity.max_sequence_length = std::min(capacity.max_sequence_length, step);
}

// Rows of forced tokens are those of drafts. A recurrent model needs memory for the state of each,
// which it has with --speculate only.
std::uint32_t ForcedTokens(std::uint32_t asked, std::uint32_t decode_rows, const ShardFacts& facts,
                           const GroupCapacity& capacity) {
  if (!facts.Has("grammar") || !facts.Has("speculation")) return 0;
  const std::uint32_t most =
      facts.Has("state_snapshots") ? decode_rows - 1 : capacity.max_step_tokens - 1;
  return std::min(asked, most);
}

}  // namespace

CacheSizes CacheSizesOf(const GroupFormed& formed) {
  const ShardFacts& facts = formed.facts;
  CacheSizes sizes;
  for (const KvGroupFacts& group : facts.kv_groups) {
    sizes.kv_groups.push_back(
        {group.bytes_per_token * facts.world_size, group.layers, group.window});
  }
  sizes.state_layers = facts.state_layers;
  sizes.state_bytes = facts.state_bytes * facts.world_size;
  sizes.snapshots = formed.capacity.snapshots;
  sizes.total_bytes = formed.cache_bytes;
  return sizes;
}

std::uint64_t ArithmeticClassOf(const GroupFormed& formed) {
  const ShardFacts& facts = formed.facts;
  std::uint64_t hash = Fnv1a(facts.fingerprint);
  for (const std::string& part :
       {facts.device, facts.backend, facts.dtype, std::to_string(facts.world_size)}) {
    hash = Fnv1a(part, Fnv1a("|", hash));
  }
  return hash;
}

absl::StatusOr<std::unique_ptr<GroupLink>> GroupLink::Form(GroupLinkOptions options,
                                                           Metrics& metrics) {
  std::unique_ptr<GroupLink> link(new GroupLink(std::move(options), metrics));
  absl::Status formed = link->RunFormation();
  if (formed.ok()) return link;
  const std::string& name = link->options_.name;
  return name.empty() ? formed : WithContext(formed, name);
}

GroupLink::GroupLink(GroupLinkOptions options, Metrics& metrics)
    : options_(std::move(options)),
      metrics_(metrics),
      plans_(options_.epoch, options_.sockets.size()) {
  formed_.group = options_.group;
  formed_.epoch = options_.epoch;
  for (std::size_t rank = 0; rank < options_.sockets.size(); ++rank) {
    ranks_.push_back(std::make_unique<ShardClient>(options_.sockets[rank],
                                                   static_cast<std::uint32_t>(rank), options_.stop,
                                                   options_.tls.get(), options_.rank_timeout));
  }
}

GroupLink::~GroupLink() { Close(); }

absl::Status GroupLink::RunFormation() {
  const auto deadline = std::chrono::system_clock::now() + options_.startup_timeout;
  PENSTOCK_RETURN_IF_ERROR(DescribeAll(deadline));
  PENSTOCK_RETURN_IF_ERROR(ConfigureAll(deadline));
  return WarmupAndCommit(deadline);
}

absl::Status GroupLink::OnAllRanks(const std::function<absl::Status(ShardClient&)>& call) {
  std::vector<absl::Status> statuses(ranks_.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = call(*ranks_[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (absl::Status& status : statuses) PENSTOCK_RETURN_IF_ERROR(std::move(status));
  return absl::OkStatus();
}

absl::Status GroupLink::DescribeAll(ShardClient::Deadline deadline) {
  std::vector<ShardFacts> facts(ranks_.size());
  PENSTOCK_RETURN_IF_ERROR(OnAllRanks([&](ShardClient& shard) -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(shard.Describe(deadline).status());
    PENSTOCK_RETURN_IF_ERROR(shard.WatchLoad(deadline));
    PENSTOCK_ASSIGN_OR_RETURN(facts[shard.rank()], shard.Describe(deadline));
    return absl::OkStatus();
  }));
  for (const ShardFacts& other : facts) {
    PENSTOCK_RETURN_IF_ERROR(CheckAgreement(facts.front(), other, ranks_.size()));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckKvGroups(facts.front()));
  formed_.facts = facts.front();
  return absl::OkStatus();
}

absl::Status GroupLink::ConfigureAll(ShardClient::Deadline deadline) {
  const ShardFacts& facts = formed_.facts;
  GroupCapacity& capacity = formed_.capacity;
  capacity.block_size = facts.block_size;
  capacity.padded_attention = facts.padded_attention;
  capacity.shares_blocks = facts.Has("prefix_caching");
  if (facts.kv_groups.size() > 1) capacity.window = facts.kv_groups.back().window;
  capacity.length_rule = facts.length_rule;
  capacity.original_length = facts.original_length;
  capacity.slots = options_.max_sequences;
  capacity.max_step_tokens = options_.max_step_tokens;
  if (capacity.max_step_tokens == 0) {
    capacity.max_step_tokens = facts.device == "cpu" ? kCpuStepTokens : kCudaStepTokens;
  }
  capacity.max_sequence_length = facts.max_position;
  if (options_.max_sequence_length > 0) {
    capacity.max_sequence_length = std::min(options_.max_sequence_length, facts.max_position);
  }
  if (facts.whole_texts) FitWholeTexts(options_.max_step_tokens, capacity);
  if (options_.max_candidates > 0 && !facts.Has("contrastive_search")) {
    return absl::FailedPreconditionError(
        "--contrastive-search: must also be given to the shards; these do not offer it");
  }
  capacity.max_candidates = std::min(options_.max_candidates, capacity.max_step_tokens);
  v1::ConfigureRequest request;
  request.set_epoch(options_.epoch.value());
  request.set_world_size(static_cast<std::uint32_t>(ranks_.size()));
  request.set_rendezvous(options_.rendezvous);
  request.set_fingerprint(facts.fingerprint);
  v1::Limits& limits = *request.mutable_limits();
  limits.set_max_step_tokens(capacity.max_step_tokens);
  limits.set_max_sequences(capacity.slots);
  limits.set_max_sequence_length(capacity.max_sequence_length);
  limits.set_max_candidates(capacity.max_candidates);
  const std::uint32_t rows = std::min(options_.max_decode_rows, capacity.max_step_tokens);
  capacity.forced_tokens = ForcedTokens(options_.forced_tokens, rows, facts, capacity);
  limits.set_max_decode_rows(std::max(rows, 1 + capacity.forced_tokens));
  limits.set_forced_tokens(options_.forced_tokens > 0);
  if (options_.snapshots) limits.set_max_snapshots(kSnapshotsPerSlot * capacity.slots);
  limits.set_late_masks(true);  // the core handles them
  limits.set_window_tables(capacity.window > 0);
  return OnAllRanks([&](ShardClient& shard) { return shard.Configure(request, deadline); });
}

absl::Status GroupLink::WarmupAndCommit(ShardClient::Deadline deadline) {
  std::vector<ShardWarmup> warmups(ranks_.size());
  PENSTOCK_RETURN_IF_ERROR(OnAllRanks([&](ShardClient& shard) -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(warmups[shard.rank()], shard.Warmup(options_.epoch, deadline));
    return absl::OkStatus();
  }));
  formed_.calibration = warmups.front().calibration;
  const std::size_t groups = formed_.facts.kv_groups.size();
  PENSTOCK_RETURN_IF_ERROR(CheckBlockCounts(warmups, groups));
  ShardPool pool = warmups.front().pool;
  for (const ShardWarmup& warmup : warmups) {
    for (std::size_t i = 0; i < groups; ++i) {
      pool.blocks[i] = std::min(pool.blocks[i], warmup.pool.blocks[i]);
    }
    pool.cells = std::min(pool.cells, warmup.pool.cells);
    pool.snapshots = std::min(pool.snapshots, warmup.pool.snapshots);
  }
  GroupCapacity& capacity = formed_.capacity;
  capacity.blocks = pool.blocks.front();
  if (capacity.window > 0) capacity.window_blocks = pool.blocks.back();
  capacity.cells = pool.cells;
  capacity.snapshots = pool.snapshots;
  if (pool.snapshots > 0) capacity.shares_blocks = true;
  std::vector<std::uint64_t> bytes(ranks_.size(), 0);
  PENSTOCK_RETURN_IF_ERROR(OnAllRanks([&](ShardClient& shard) -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(bytes[shard.rank()], shard.Commit(options_.epoch, pool, deadline));
    return absl::OkStatus();
  }));
  formed_.cache_bytes = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  return absl::OkStatus();
}

void GroupLink::Open(GroupListener* listener, const std::shared_ptr<ExecuteQueue>& queue,
                     std::chrono::milliseconds step_timeout) {
  listener_ = listener;
  step_timeout_ = step_timeout;
  for (const auto& shard : ranks_) shard->PrepareExecute(this, queue);
  for (const auto& shard : ranks_) shard->StartExecute();
}

void GroupLink::Send(const StepPlan& plan) {
  if (over_) return;
  plans_.Add(plan.step, SteadyNow());
  metrics_.groups().SetPlansInFlight(options_.group, plans_.without_result());
  for (const auto& shard : ranks_) {
    metrics_.groups().ExecuteMessage(GroupMetrics::Direction::kPlan, options_.group, shard->rank());
    shard->Send(plan);
  }
}

void GroupLink::OnResult(std::uint32_t rank, StepResult result) {
  metrics_.groups().ExecuteMessage(GroupMetrics::Direction::kResult, options_.group, rank);
  if (over_) return;
  if (auto broken = plans_.Answer(rank, std::move(result))) return Lose(*std::move(broken));
  metrics_.groups().SetPlansInFlight(options_.group, plans_.without_result());
  while (auto done = plans_.TakeReady()) listener_->OnStepDone(options_.group, *std::move(done));
}

void GroupLink::OnStreamEnd(std::uint32_t rank, absl::Status status) {
  const std::string why = status.ok() ? "it closed the stream" : Message(status);
  Lose(RankName(rank) + " was lost: " + why, status.ok());
}

void GroupLink::Lose(std::string reason, bool in_order) {
  if (over_) return;
  Abandon();
  if (!options_.name.empty()) reason = options_.name + ": " + reason;
  listener_->OnGroupLost(options_.group, options_.epoch, std::move(reason), in_order);
}

// A quarter of the timeout passes before the first question. The rest is for the answer.
std::chrono::milliseconds GroupLink::LifePause() const {
  return std::min<std::chrono::milliseconds>(kMostLifePause, options_.rank_timeout / 4);
}

std::optional<Time> GroupLink::NextCheck() const {
  const std::optional<Time> oldest = plans_.oldest();
  if (!oldest) return std::nullopt;
  const Time hung = *oldest + step_timeout_;
  return asks_ranks() ? std::min(hung, NextLifeCheck(*oldest)) : hung;
}

void GroupLink::CheckRanks(Time now) {
  const std::optional<Time> oldest = plans_.oldest();
  if (!oldest) return;
  if (now >= *oldest + step_timeout_) {
    return Lose(plans_.DescribeOldest() + " for " + std::to_string(step_timeout_.count()) +
                " ms (--step-timeout)");
  }
  if (!asks_ranks() || now < NextLifeCheck(*oldest)) return;
  last_asked_ = now;
  for (const auto& shard : ranks_) shard->CheckAlive(options_.rank_timeout - LifePause());
}

// Another thread may call this when the link was abandoned before, so it then writes nothing.
void GroupLink::Silence() {
  if (over_) return;
  over_ = true;
  plans_.Clear();
  metrics_.groups().SetPlansInFlight(options_.group, 0);
}

void GroupLink::Abandon() {
  Silence();
  for (const auto& shard : ranks_) shard->AbortExecute();
}

void GroupLink::Close() {
  Silence();
  // All streams end before the first is destroyed: a callback of one may abort the others.
  for (const auto& shard : ranks_) shard->CloseExecute(kCloseGrace);
  ranks_.clear();
}

}  // namespace penstock::router
