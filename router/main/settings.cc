#include "router/main/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <system_error>

#include "common/bad_option.h"
#include "common/options/tls_files.h"
#include "common/request/decision.h"
#include "common/socket_names.h"
#include "common/status.h"
#include "common/version.h"
#include "router/main/shard_addresses.h"
#include "scheduler/order/order_policy.h"
#include "scheduler/placement.h"

namespace penstock::router {
namespace {

// --max-step-tokens auto when the target time bounds a step.
constexpr std::uint32_t kTimedStepTokens = 2048;
// Open files of the router that are not connections of clients: shards, logs, wake-ups.
constexpr std::uint64_t kOtherFiles = 128;
// The largest requests for vectors that may wait.
constexpr std::uint32_t kQueuedBatches = 4;

std::uint32_t Count(const options::Values& values, std::string_view name) {
  return static_cast<std::uint32_t>(values.GetInt(name));
}

// 0 when unset or auto.
std::uint32_t CountOrZero(const options::Values& values, std::string_view name) {
  const std::int64_t value = values.FindInt(name).value_or(0);
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

std::chrono::milliseconds Milliseconds(const options::Values& values, std::string_view name) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(values.GetDuration(name));
}

Duration TargetInterToken(const options::Values& values) {
  return Duration(std::llround(values.GetDouble("target-inter-token-ms") * 1e6));
}

scheduler::Batching BatchingOf(const std::string& name) {
  if (name == "none") return scheduler::Batching::kNone;
  return name == "static" ? scheduler::Batching::kStatic : scheduler::Batching::kContinuous;
}

GroupLinkOptions LinkSettings(const options::Values& values) {
  GroupLinkOptions link;
  link.max_step_tokens = CountOrZero(values, "max-step-tokens");
  if (link.max_step_tokens == 0 && TargetInterToken(values) > Duration(0)) {
    link.max_step_tokens = kTimedStepTokens;
  }
  // A request uses one slot, so more slots than requests would stay unused.
  link.max_sequences = CountOrZero(values, "max-batch-size");
  if (link.max_sequences == 0) link.max_sequences = Count(values, "max-concurrent-requests");
  link.max_sequence_length = CountOrZero(values, "max-total-tokens");
  if (values.GetBool("contrastive-search")) link.max_candidates = Count(values, "max-candidates");
  link.max_decode_rows = 1 + CountOrZero(values, "speculate");
  link.forced_tokens = CountOrZero(values, "forced-tokens");
  link.snapshots = values.GetBool("prefix-caching");
  return link;
}

// --shard-uds-path, or the prefix of --master-shard-uds-path; empty when neither is given.
absl::StatusOr<std::string> SocketPrefix(const options::Values& values) {
  const std::string& prefix = values.GetString("shard-uds-path");
  const std::string& master = values.GetString("master-shard-uds-path");
  if (master.empty()) return prefix;
  if (!prefix.empty() || !master.ends_with("-0")) {
    return BadOption("master-shard-uds-path", master,
                     "a path that ends in -0, without --shard-uds-path beside it");
  }
  return master.substr(0, master.size() - 2);
}

// The shards that the launcher started.
ShardGroups LaunchedGroups(const options::Values& values, const std::string& sockets) {
  ShardGroups groups(Count(values, "num-replicas"));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    std::optional<std::int64_t> named;
    if (groups.size() > 1) named = static_cast<std::int64_t>(group);
    const std::string prefix = GroupSocketPrefix(sockets, named);
    for (std::uint32_t rank = 0; rank < Count(values, "num-shard"); ++rank) {
      groups[group].push_back(prefix + "-" + std::to_string(rank));
    }
  }
  return groups;
}

// The one of `all` that has this name, else the first.
template <class Policy>
Policy Named(const std::string& name, std::string_view (*name_of)(Policy),
             std::initializer_list<Policy> all) {
  const auto found = std::ranges::find(all, name, name_of);
  return found == all.end() ? *all.begin() : *found;
}

// Tokens that the cache holds, limited to one sequence.
std::uint32_t LongestSequence(const GroupFormed& formed) {
  const auto pool = std::uint64_t{formed.capacity.blocks} * formed.capacity.block_size;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(pool, formed.capacity.max_sequence_length));
}

// The errno of opening the file for writing; 0: it can be written.
int WriteError(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return EISDIR;
  if (std::filesystem::exists(path, ignored)) return ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const bool is_file =
      std::filesystem::exists(parent, ignored) && !std::filesystem::is_directory(parent, ignored);
  if (is_file) return ENOTDIR;
  return ::access(parent.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

}  // namespace

std::vector<std::string> NoEffectWarnings(const options::Values& values) {
  std::vector<std::string> warnings;
  // TGI's admission rule is about whole prompts; TGI ignores it with chunks, too.
  for (const std::string name : {"max-waiting-tokens", "waiting-served-ratio"}) {
    if (!values.IsSet(name) || values.GetString("prefill") == "whole") continue;
    warnings.push_back("--" + name +
                       " has no effect without --prefill whole: waiting requests join at every "
                       "step");
  }
  for (const std::string name : {"rank-model", "starvation-steps", "starvation-quantum"}) {
    if (!values.IsSet(name) || values.GetString("order") == "learned") continue;
    warnings.push_back("--" + name + " has no effect without --order learned");
  }
  if (values.IsSet("revision") && values.GetString("hub-model-id").empty()) {
    warnings.push_back("--revision " + values.GetString("revision") +
                       " has no effect: the model is the local folder " +
                       values.GetString("model-id"));
  }
  return warnings;
}

absl::Status CheckLogFiles(const options::Values& values) {
  for (const std::string name : {"step-log", "record", "audit-log"}) {
    const std::string& path = values.GetString(name);
    if (path.empty()) continue;
    const int error = WriteError(path);
    if (error == 0) continue;
    return BadOption(name, path, std::string("a writable file: ") + std::strerror(error));
  }
  return absl::OkStatus();
}

std::string ShortContextWarning(const options::Values& values, const GroupFormed& formed) {
  const std::uint32_t longest = LongestSequence(formed);
  const std::uint32_t context = formed.capacity.max_sequence_length;
  if (longest >= context || CountOrZero(values, "max-total-tokens") > 0) return "";
  return "the KV cache holds " + std::to_string(longest) + " tokens, so max_total_tokens is " +
         std::to_string(longest) + " instead of " + std::to_string(context) +
         ": a larger --kv-cache-memory allows longer requests";
}

HttpOptions HttpSettings(const options::Values& values) {
  HttpOptions http;
  http.host = values.GetString("hostname");
  http.port = static_cast<std::uint16_t>(values.GetInt("port"));
  http.io_threads = Count(values, "io-threads");
  http.total_timeout = values.GetDuration("request-timeout");
  http.limits.body_bytes = static_cast<std::size_t>(values.GetBytes("payload-limit"));
  return http;
}

std::string OpenFilesWarning(const HttpOptions& http, std::uint64_t open_files) {
  const std::uint64_t needed = http.max_connections + kOtherFiles;
  if (open_files >= needed) return "";
  return "the hard limit of open files is " + std::to_string(open_files) + ", but " +
         std::to_string(http.max_connections) + " connections need " + std::to_string(needed) +
         ": further connections wait. LimitNOFILE of systemd or `ulimit -Hn` sets it";
}

ApiOptions ApiSettings(const options::Values& values) {
  ApiOptions api;
  api.version = std::string(Version());
  api.max_concurrent_requests = Count(values, "max-concurrent-requests");
  api.request_timeout = values.GetDuration("request-timeout");
  api.max_queue_wait = values.GetDuration("max-queue-wait");
  api.max_request_cost = static_cast<std::uint64_t>(values.GetInt("max-request-cost"));
  api.max_best_of = Count(values, "max-best-of");
  api.max_stop_sequences = Count(values, "max-stop-sequences");
  api.max_top_n_tokens = Count(values, "max-top-n-tokens");
  api.max_client_batch_size = Count(values, "max-client-batch-size");
  api.max_embed_batch_size = Count(values, "max-embed-batch-size");
  api.validation_workers = Count(values, "validation-workers");
  api.strict_json = values.GetBool("strict-json");
  api.trust_request_chat_template = values.GetBool("trust-request-chat-template");
  api.admin_key_name = values.GetString("admin-key-name");
  api.cors_origins = values.GetList("cors-allow-origin");
  api.cors_headers = values.GetList("cors-allow-headers");
  if (DialectSettings(values).tgi_only && api.cors_origins.empty()) api.cors_origins = {"*"};
  api.compute_type = values.GetString("compute-type");
  api.grammar = !values.GetBool("disable-grammar-support");
  return api;
}

DialectOptions DialectSettings(const options::Values& values) {
  DialectOptions dialects;
  dialects.tgi_only = values.GetString("api-profile") == "tgi";
  dialects.batching = values.GetString("batching");
  dialects.response_store = {
      .entries = Count(values, "response-store-entries"),
      .bytes = static_cast<std::size_t>(values.GetBytes("response-store-memory"))};
  dialects.console = values.GetBool("console");
  const std::string& api_default = values.GetString("api-default");
  dialects.djl.is_default =
      api_default.empty() ? values.GetString("api-profile") == "djl" : api_default == "djl";
  dialects.djl.decoding_strategy = values.GetString("decoding-strategy");
  dialects.djl.output_formatter = values.GetString("output-formatter");
  dialects.djl.tgi_compat = values.GetBool("tgi-compat");
  return dialects;
}

absl::StatusOr<FleetOptions> FleetSettings(const options::Values& values, bool launched) {
  const std::string& shards = values.GetString("shards");
  PENSTOCK_ASSIGN_OR_RETURN(const std::string prefix, SocketPrefix(values));
  if (shards.empty() && prefix.empty() && values.program().profile != nullptr) {
    return absl::InvalidArgumentError(
        "--master-shard-uds-path: must be given. It is the socket of rank 0, PREFIX-0, in a folder "
        "of mode 0700. The default of text-generation-inference, /tmp/text-generation-server-0, is "
        "not used: any user of the machine could put a socket there first");
  }
  if (shards.empty() == prefix.empty()) {
    return absl::InvalidArgumentError("one of --shards and --shard-uds-path must be given");
  }
  FleetOptions fleet;
  ShardGroups groups = LaunchedGroups(values, prefix);
  if (!shards.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(groups, ParseShardGroups(shards));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto tls, options::ReadShardTls(values));
  if (tls == nullptr && shards.find("tcp:") != std::string::npos) {
    return BadOption(
        "shards", shards,
        "given with --shard-tls-cert, --shard-tls-key and --shard-tls-ca: TCP needs mutual "
        "TLS between router and shards");
  }
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    GroupLinkOptions link = LinkSettings(values);
    link.group = GroupId(group);
    if (groups.size() > 1) link.name = "group " + std::to_string(group);
    link.sockets = std::move(groups[group]);
    link.tls = tls;
    link.rank_timeout = Milliseconds(values, "rank-timeout");
    const auto patience = Milliseconds(values, "startup-timeout");
    if (!launched && patience.count() > 0) link.startup_timeout = patience;
    fleet.groups.push_back(std::move(link));
  }
  fleet.reattach = !launched || fleet.groups.size() > 1 || values.GetString("restart") == "always";
  // The launcher restarts the child of this engine with its shard.
  if (values.GetString("engine") == "transformers") fleet.reattach = true;
  fleet.patient = values.GetBool("rejoin");
  fleet.reattach = fleet.reattach || fleet.patient;
  fleet.start_with_any = !launched || fleet.patient;
  return fleet;
}

namespace {

// At least one, since 0 means no bound.
std::uint32_t PinnedBlocks(const options::Values& values, const GroupFormed& formed) {
  const options::MemoryAmount memory = *values.FindMemory("cached-prompt-memory");
  const GroupCapacity& capacity = formed.capacity;
  std::uint64_t token_bytes = 0;  // as if all layers kept the whole prefix
  for (const KvGroupFacts& group : formed.facts.kv_groups) token_bytes += group.bytes_per_token;
  const std::uint64_t block_bytes =
      token_bytes * formed.facts.world_size * std::uint64_t{capacity.block_size};
  double blocks = memory.share * capacity.blocks;
  if (memory.share == 0 && block_bytes > 0) {
    blocks = static_cast<double>(memory.bytes) / static_cast<double>(block_bytes);
  }
  return static_cast<std::uint32_t>(
      std::clamp<double>(blocks, 1, static_cast<double>(capacity.blocks)));
}

}  // namespace

CoreLoopOptions CoreSettings(const options::Values& values, const GroupFormed& formed) {
  CoreLoopOptions core;
  scheduler::Config& config = core.scheduler;
  config.max_step_tokens = formed.capacity.max_step_tokens;
  config.max_batch_prefill_tokens = CountOrZero(values, "max-batch-prefill-tokens");
  config.max_batch_total_tokens = CountOrZero(values, "max-batch-total-tokens");
  config.max_batch_size = CountOrZero(values, "max-batch-size");
  config.prefix_caching = values.GetBool("prefix-caching");
  config.max_waiting_requests = Count(values, "max-concurrent-requests");
  config.max_decode_rows =
      std::min(1 + CountOrZero(values, "speculate"), formed.capacity.max_step_tokens);
  config.target_inter_token = TargetInterToken(values);
  config.split = values.GetString("split") == "sparsity" ? scheduler::SplitObjective::kSparsity
                                                         : scheduler::SplitObjective::kCost;
  config.max_splits = Count(values, "max-splits");
  config.max_sparsity_ppm =
      static_cast<std::uint32_t>(std::lround(values.GetDouble("max-sparsity") * 1e6));
  config.batching = BatchingOf(values.GetString("batching"));
  if (values.GetString("static-grouping") == "equal") {
    config.static_grouping = scheduler::StaticGrouping::kEqual;
  }
  config.prefill = values.GetString("prefill") == "whole" ? scheduler::Prefill::kWhole
                                                          : scheduler::Prefill::kChunked;
  using enum scheduler::AdmissionMode;
  config.admission = Named(values.GetString("admission"), scheduler::AdmissionName,
                           {kMixed, kGuaranteed, kOptimistic});
  config.order = scheduler::FindOrder(values.GetString("order")).value_or(scheduler::Order::kFcfs);
  config.starvation_steps = Count(values, "starvation-steps");
  config.starvation_quantum = Count(values, "starvation-quantum");
  using enum scheduler::PlacementPolicy;
  config.placement = Named(values.GetString("placement"), scheduler::PlacementName,
                           {kPrefixMatch, kLeastLoaded, kRoundRobin});
  config.max_waiting_tokens = Count(values, "max-waiting-tokens");
  config.waiting_served_permille =
      static_cast<std::uint32_t>(std::lround(values.GetDouble("waiting-served-ratio") * 1000));
  config.pinned_prefixes = Count(values, "cached-prompts");
  config.pinned_blocks = PinnedBlocks(values, formed);
  config.recovery_timeout = values.GetDuration("recovery-timeout");
  core.mailbox_arrivals = config.max_waiting_requests;
  core.step_timeout = Milliseconds(values, "step-timeout");
  core.step_log = values.GetString("step-log");
  core.record = values.GetString("record");
  return core;
}

namespace {

ModelFacts WithBatchLimit(const options::Values& values, const GroupFormed& formed,
                          ModelFacts facts) {
  facts.max_batch_total_tokens = CountOrZero(values, "max-batch-total-tokens");
  if (facts.max_batch_total_tokens == 0) {
    facts.max_batch_total_tokens = formed.capacity.blocks * formed.capacity.block_size;
  }
  return facts;
}

}  // namespace

absl::StatusOr<ModelFacts> FactsOf(const options::Values& values, const GroupFormed& formed) {
  ModelFacts facts;
  facts.model_id = values.GetString("hub-model-id");
  if (facts.model_id.empty()) facts.model_id = values.GetString("model-id");
  facts.model_sha = values.GetString("hub-commit");
  facts.served_name = values.GetString("served-model-name");
  if (facts.served_name.empty()) facts.served_name = facts.model_id;
  facts.dtype = formed.facts.dtype;
  facts.device = formed.facts.device;
  facts.backend = formed.facts.backend;
  facts.vocabulary = formed.facts.vocabulary;
  facts.has_grammar = formed.facts.Has("grammar");
  facts.has_watermark = formed.facts.Has("watermark");
  facts.has_adapters = formed.facts.Has("adapters");
  facts.any_adapter = formed.facts.Has("shows-requests");
  facts.max_candidates = formed.capacity.max_candidates;
  facts.vectors = formed.facts.vectors;

  const std::uint32_t longest = LongestSequence(formed);
  facts.max_total_tokens = CountOrZero(values, "max-total-tokens");
  if (facts.max_total_tokens > longest) {
    return BadOption("max-total-tokens", std::to_string(facts.max_total_tokens),
                     "at most " + std::to_string(longest) + " (the model's context is " +
                         std::to_string(formed.facts.max_position) + ", the KV cache holds " +
                         std::to_string(formed.capacity.blocks) + " blocks of " +
                         std::to_string(formed.capacity.block_size) + " tokens)");
  }
  if (facts.max_total_tokens == 0) {
    const std::uint32_t batch = CountOrZero(values, "max-batch-total-tokens");
    facts.max_total_tokens = batch > 0 ? std::min(longest, batch) : longest;
  }
  facts.max_input_tokens = CountOrZero(values, "max-input-tokens");
  if (facts.vectors) {  // a text to embed needs no room for an answer
    const std::uint32_t total = facts.max_total_tokens;
    facts.max_input_tokens =
        facts.max_input_tokens == 0 ? total : std::min(facts.max_input_tokens, total);
    return WithBatchLimit(values, formed, std::move(facts));
  }
  if (facts.max_input_tokens == 0) facts.max_input_tokens = facts.max_total_tokens - 1;
  if (facts.max_input_tokens >= facts.max_total_tokens) {
    return BadOption("max-input-tokens", std::to_string(facts.max_input_tokens),
                     "below --max-total-tokens " + std::to_string(facts.max_total_tokens));
  }
  return WithBatchLimit(values, formed, std::move(facts));
}

EmbedQueueOptions EmbedSettings(const options::Values& values, const GroupFormed& formed) {
  EmbedQueueOptions embed;
  embed.max_texts = kQueuedBatches * Count(values, "max-embed-batch-size");
  embed.call_tokens = formed.capacity.max_step_tokens;
  embed.call_texts = formed.capacity.slots;
  embed.timeout = Milliseconds(values, "step-timeout");
  return embed;
}

absl::StatusOr<OtlpOptions> OtlpSettings(const options::Values& values, const ModelFacts& facts) {
  OtlpOptions otlp;
  otlp.endpoint = values.GetString("otlp-endpoint");
  otlp.service_name = values.GetString("otlp-service-name");
  if (otlp.service_name.empty()) {
    otlp.service_name =
        DialectSettings(values).tgi_only ? "text-generation-inference.router" : "penstock";
  }
  otlp.version = std::string(Version());
  otlp.model = facts.served_name;
  otlp.scheme = values.IsSet("tls-cert") ? "https" : "http";
  if (!otlp.endpoint.empty()) PENSTOCK_RETURN_IF_ERROR(CheckOtlpEndpoint(otlp.endpoint));
  return otlp;
}

}  // namespace penstock::router
