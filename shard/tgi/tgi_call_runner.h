// Runs the calls of generate.v3 that change something. A call takes the lease of the shard and
// passes the barrier of the ranks. Then it runs on the model thread, in the present session. Knows
// no gRPC.
//
// The ranks form their group themselves, through the same GroupSession as a native driver. The name
// of the group is the rendezvous. The cache has the least number of blocks that any rank reports.
//
// Threading: Start from any thread; bodies run on the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "common/time.h"
#include "shard/service/shard_service.h"
#include "shard/tgi/rank_barrier.h"
#include "shard/tgi/tgi_session.h"
#include "text/tokenizer.h"

namespace penstock::shard {

struct TgiCall {
  std::string key;  // equal on all ranks
  Time deadline{};
  bool forms_group = false;  // false: `session` is null if there is no group
  std::function<absl::Status(TgiSession* session)> body;
  std::function<void(const absl::Status&)> done;  // once, on any thread
};

class TgiCallRunner {
 public:
  // `state` and `barrier` outlive the runner and all its calls. Without a barrier all calls fail.
  TgiCallRunner(ServiceState& state, RankBarrier* barrier, std::string model_folder);

  void Start(TgiCall call);

  // Bounds later prompt chunks, also those of later groups. Called by bodies only.
  void SetMaxPrefillTokens(std::uint32_t tokens);

 private:
  void Post(std::shared_ptr<TgiCall> call, const RankVerdict& verdict);
  absl::Status RunInGroup(TgiCall& call, const RankVerdict& verdict);
  absl::Status Form(const std::string& name, Time deadline);
  absl::Status FormGroup(const std::string& name, Time deadline);
  absl::StatusOr<v1::WarmupResponse> Prepare(const std::string& name);
  RankVerdict Agree(const std::string& name, std::uint64_t mine, Time deadline);
  absl::Status MakeSession(std::uint32_t blocks);
  void Finish(TgiCall& call, const absl::Status& status);

  std::string LostGroup();
  bool Has(const std::string& group);
  void SetGroup(const std::string& name, bool formed);

  ServiceState& state_;
  RankBarrier* const barrier_;
  const std::string model_folder_;
  std::atomic<std::size_t> calls_ = 0;

  std::mutex mutex_;
  std::string formed_;  // the present group, or empty
  std::string lost_;    // the last group that was named and is not present

  // Model thread only.
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::uint64_t step_ = 0;  // the last of the group
  std::unique_ptr<TgiSession> session_;
  std::uint32_t max_prefill_tokens_ = 0;
};

}  // namespace penstock::shard
