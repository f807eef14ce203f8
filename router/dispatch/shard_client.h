// The router's client of one rank: unary calls that form the group, then the Execute stream.
// Formation calls block until a deadline and may come from any thread. Execute uses callbacks.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/plan/embed_text.h"
#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "common/tls_identity.h"
#include "router/engine.h"

namespace penstock::v1 {
class ConfigureRequest;
}

namespace penstock::router {

// Layers of a rank that share a block table.
struct KvGroupFacts {
  std::uint64_t bytes_per_token = 0;  // of this rank
  std::uint32_t layers = 0;
  std::uint32_t window = 0;  // 0 = all positions
  friend bool operator==(const KvGroupFacts&, const KvGroupFacts&) = default;
};

// An adapter on a shard.
struct ShardAdapter {
  std::string id;
  std::string folder;
  std::uint32_t rank = 0;
  std::uint64_t bytes = 0;  // of this rank of the group
};

// The answer to Describe. All ranks of a group must agree on it.
struct ShardFacts {
  std::string dtype;
  std::string device;
  std::string backend;
  std::string fingerprint;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t max_position = 0;
  std::uint32_t block_size = 0;
  std::vector<KvGroupFacts> kv_groups;
  std::uint32_t state_layers = 0;
  std::uint64_t state_bytes = 0;  // of this rank, one sequence
  bool padded_attention = false;
  LengthRule length_rule = LengthRule::kNone;
  std::uint32_t original_length = 0;
  std::optional<VectorFacts> vectors;  // absent: the model generates text
  bool whole_texts = false;            // a text to embed must fit in a step
  std::vector<TokenId> eos_token_ids;
  std::vector<ShardAdapter> adapters;     // loaded by the shard itself
  std::vector<std::string> capabilities;  // optional parts of the protocol that it has

  bool Has(std::string_view capability) const {
    return std::ranges::find(capabilities, capability) != capabilities.end();
  }
};

// How much of each kind a rank has room for, or must allocate.
struct ShardPool {
  std::vector<std::uint32_t> blocks;  // of each KV group
  std::uint32_t cells = 0;            // padded KV layout only
  std::uint32_t snapshots = 0;        // recurrent models only
};

struct ShardWarmup {
  ShardPool pool;
  Calibration calibration;
};

// Receives the events of the Execute stream, on the thread that polls its queue.
class ExecuteListener {
 public:
  virtual ~ExecuteListener() = default;
  virtual void OnResult(std::uint32_t rank, StepResult result) = 0;
  // Called once, last. OK after Close.
  virtual void OnStreamEnd(std::uint32_t rank, absl::Status status) = 0;
};

class ExecuteQueue;

using Vectors = std::vector<std::vector<float>>;

class ShardClient {
 public:
  using Deadline = std::chrono::system_clock::time_point;

  // `address`: path of a Unix socket, or tcp:HOST:PORT, which needs `tls`. The first call connects.
  // A request to stop ends the current and all later formation calls with Cancelled. On a Unix
  // socket they end with Unavailable when the process has not answered for `silence` (0: no limit).
  // During Execute the caller uses CheckAlive instead.
  ShardClient(const std::string& address, std::uint32_t rank, std::stop_token stop,
              const TlsIdentity* tls = nullptr,
              std::chrono::milliseconds silence = std::chrono::milliseconds(0));
  ~ShardClient();
  ShardClient(const ShardClient&) = delete;
  ShardClient& operator=(const ShardClient&) = delete;

  // Waits until the deadline for the shard's socket to appear; logs that after a second. The error
  // names the address and why it could not be reached.
  absl::StatusOr<ShardFacts> Describe(Deadline deadline);
  // Returns when loading has ended.
  absl::Status WatchLoad(Deadline deadline);
  // Sets the rank of the request.
  absl::Status Configure(v1::ConfigureRequest request, Deadline deadline);
  absl::StatusOr<ShardWarmup> Warmup(Epoch epoch, Deadline deadline);
  // The last call of formation. Connects the channel of Execute. Returns the bytes of the cache.
  absl::StatusOr<std::uint64_t> Commit(Epoch epoch, const ShardPool& pool, Deadline deadline);

  // The vectors of texts. Only rank 0 returns any. Blocks, from any thread.
  absl::StatusOr<Vectors> Embed(Epoch epoch, std::span<const EmbedText> texts, Deadline deadline);

  // Adapters. Block, from any thread. An error about the adapter itself is as the shard gave it.
  absl::StatusOr<ShardAdapter> LoadAdapter(const std::string& id, const std::string& folder,
                                           Deadline deadline);
  absl::Status UnloadAdapter(const std::string& id, Deadline deadline);

  // Creates the stream, and starts it. These are two calls so that the streams of all ranks exist
  // before the first can fail. The listener must live until OnStreamEnd or the end of this object.
  void PrepareExecute(ExecuteListener* listener, std::shared_ptr<ExecuteQueue> queue);
  void StartExecute();
  // The queue's owner. Never blocks. The caller bounds the plans in flight (pipeline depth).
  void Send(const StepPlan& plan);
  // Asks the process whether it lives, unless it is being asked already. If no answer comes
  // `within` this time, the stream ends with Unavailable. The thread that polls the queue.
  void CheckAlive(std::chrono::milliseconds within);
  // Closes the stream, so that the shard frees its sequences; cancels it after `grace`. Waits until
  // no callback runs. Not from a callback.
  void CloseExecute(std::chrono::milliseconds grace);
  // Cancels the stream and returns at once. Any thread, also from a callback.
  void AbortExecute();

  std::uint32_t rank() const { return rank_; }

 private:
  class Stream;
  struct Connection;

  bool on_tcp() const;
  absl::Status ConnectForExecute(Deadline deadline);

  // Describe, without logging.
  absl::StatusOr<ShardFacts> DescribeBy(Deadline deadline);
  // Why a call could not connect.
  absl::Status WhyUnreachable(absl::Status status);
  absl::Status WithRank(const absl::Status& status, const char* call) const;

  std::string address_;
  std::uint32_t rank_;
  std::stop_token stop_;
  const std::chrono::milliseconds silence_;
  std::unique_ptr<Connection> connection_;  // for forming until Commit, then for Execute
  std::unique_ptr<Stream> stream_;
};

}  // namespace penstock::router
