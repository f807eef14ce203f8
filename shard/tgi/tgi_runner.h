// Runs the calls of generate.v3 that change something: seat, meeting of the ranks, model thread,
// session. Knows no gRPC.
//
// Threading: Start and LoadedFacts from any thread; bodies run on the model thread.
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
#include "shard/tgi/meeting_place.h"
#include "shard/tgi/tgi_group.h"
#include "shard/tgi/tgi_session.h"
#include "text/tokenizer.h"

namespace penstock::shard {

struct TgiCall {
  std::string key;  // equal on all ranks
  Time deadline{};
  bool forms_group = false;  // else `session` is null when there is no group
  std::function<absl::Status(TgiSession* session)> body;
  std::function<void(const absl::Status&)> done;  // once, on any thread
};

class TgiRunner {
 public:
  // `state` and `gate` outlive the runner and all its calls.
  TgiRunner(ServiceState& state, RankGate& gate, std::string model_folder);

  void Start(TgiCall call);

  // Bound of later prompt chunks, kept over groups. Bodies only.
  void SetMaxPrefillTokens(std::uint32_t tokens);

 private:
  void Enter(std::shared_ptr<TgiCall> call, const RankVerdict& verdict);
  void Run(TgiCall& call, const RankVerdict& verdict);
  absl::Status RunInGroup(TgiCall& call, const RankVerdict& verdict);
  absl::Status Form(const std::string& name, Time deadline);
  absl::Status MakeSession(const TgiGroupFacts& facts);
  void Finish(TgiCall& call, const absl::Status& status);

  std::string LostGroup();
  bool Has(const std::string& group);
  void SetGroup(const std::string& name, bool alive);

  ServiceState& state_;
  RankGate& gate_;
  const std::string model_folder_;
  std::atomic<std::size_t> calls_ = 0;

  std::mutex mutex_;
  std::string alive_;  // the group that stands
  std::string lost_;   // the last one that was told and does not stand

  // Model thread only.
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  TgiGroup group_;
  std::unique_ptr<TgiSession> session_;
  std::uint32_t max_prefill_tokens_ = 0;
};

}  // namespace penstock::shard
