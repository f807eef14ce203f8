// One rank of a group as the router sees it: unary calls that form the group, then the long Execute
// stream. Formation calls block with a deadline and may come from any thread; Execute is driven by
// callbacks.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "common/tls_identity.h"

namespace penstock::router {

// Answer to Describe, and what every rank of a group must agree on.
struct ShardFacts {
  bool loaded = false;
  std::string model_id;
  std::string model_type;
  std::string dtype;
  std::string device;
  std::string backend;
  std::string fingerprint;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t max_position = 0;
  std::uint32_t block_size = 0;
  std::uint64_t kv_bytes_per_token = 0;  // of this rank, all layers
  bool padded_attention = false;
  bool shares_blocks = false;       // capability "prefix_caching"
  bool contrastive_search = false;  // capability of that name
  std::vector<TokenId> eos_token_ids;
  std::vector<std::string> capabilities;  // what it offers beside the protocol's minimum
};

struct ShardLoadProgress {
  std::string stage;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

struct ShardConfiguration {
  Epoch epoch;
  std::uint32_t world_size = 1;
  std::string rendezvous;
  std::string fingerprint;
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_sequences = 0;
  std::uint32_t max_sequence_length = 0;
  std::uint32_t max_candidates = 0;
  std::uint32_t max_decode_rows = 1;
};

struct ShardWarmup {
  std::uint32_t blocks = 0;
  std::uint32_t cells = 0;  // padded KV layout only
  Calibration calibration;
};

// Events of the Execute stream, from the thread that polls its queue.
class ExecuteListener {
 public:
  virtual ~ExecuteListener() = default;
  virtual void OnResult(std::uint32_t rank, StepResult result) = 0;
  // Exactly once, last. OK when Close was asked for.
  virtual void OnStreamEnd(std::uint32_t rank, absl::Status status) = 0;
};

class ExecuteQueue;

class ShardClient {
 public:
  using Deadline = std::chrono::system_clock::time_point;

  // `address`: path of a Unix socket, or tcp:HOST:PORT, which needs `tls`. Connecting happens with
  // the first call. A request to stop ends a formation call that is under way and all later ones at
  // once with Cancelled. A process behind a Unix socket that answers nothing for `silence` (0: for
  // ever) ends the formation calls with Unavailable; during Execute the caller uses CheckAlive.
  ShardClient(const std::string& address, std::uint32_t rank, std::stop_token stop,
              const TlsIdentity* tls = nullptr,
              std::chrono::milliseconds silence = std::chrono::milliseconds(0));
  ~ShardClient();
  ShardClient(const ShardClient&) = delete;
  ShardClient& operator=(const ShardClient&) = delete;

  // Waits for the shard's socket to appear, until the deadline, and says so after a second; then
  // the error says the address and why it could not be reached.
  absl::StatusOr<ShardFacts> Describe(Deadline deadline);
  // Returns when loading has ended; `progress` is called from the calling thread.
  absl::Status WatchLoad(Deadline deadline,
                         const std::function<void(const ShardLoadProgress&)>& progress);
  absl::Status Configure(const ShardConfiguration& configuration, Deadline deadline);
  absl::StatusOr<ShardWarmup> Warmup(Epoch epoch, Deadline deadline);
  // The last of formation: the connection over which Execute will run is there when it returns.
  absl::Status Commit(Epoch epoch, std::uint32_t blocks, std::uint32_t cells, Deadline deadline);

  // Makes the stream, then starts it: two calls, so that the streams of all ranks exist before the
  // first can fail. The listener must live until OnStreamEnd or the end of this object.
  void PrepareExecute(ExecuteListener* listener, std::shared_ptr<ExecuteQueue> queue);
  void StartExecute();
  // Any thread; never blocks. The caller bounds what is outstanding (pipeline depth).
  void Send(const StepPlan& plan);
  // Asks the process whether it lives, unless it is being asked already. If no answer comes `within`
  // this time, the stream ends with Unavailable. The thread that polls the queue.
  void CheckAlive(std::chrono::milliseconds within);
  // Ends the stream in order (the shard frees its sequences), after `grace` by force, and waits
  // until no callback runs, with the help of the queue's owner. Not from a callback.
  void CloseExecute(std::chrono::milliseconds grace);
  // Ends the stream at once; any thread, callbacks too.
  void AbortExecute();

  std::uint32_t rank() const { return rank_; }

 private:
  class Stream;
  struct Connection;

  bool on_tcp() const;
  absl::Status ConnectForExecute(Deadline deadline);

  // Describe without the words about waiting.
  absl::StatusOr<ShardFacts> DescribeBy(Deadline deadline);
  // Why a call that waited for the connection got none.
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
