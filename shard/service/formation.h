// Group formation: the calls Configure, Warmup, Commit and Execute, in this order. A call out of
// order is refused with FAILED_PRECONDITION and the name of the expected call. A second call while
// one is running is refused too, so an open Execute stream is the lease of the one driver.
//
// After a failed call, or an Execute that ended with an error, Configure must come next. After an
// Execute that ended without error the group stays committed and the next driver may open it.
//
// A second driver (shard/tgi) has no stream. It holds the lease while one of its calls is open and
// as long as it keeps sequences. The driver that comes first gets the lease; the other is refused
// with FAILED_PRECONDITION. A native driver may take over from an idle second driver, which ends
// the group of the latter.
//
// Thread-safe: gRPC threads begin calls, the model thread ends them.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <mutex>

#include "common/ids.h"

namespace penstock::shard {

// In the order of formation.
enum class FormationCall { kConfigure, kWarmup, kCommit, kExecute };

class Formation {
 public:
  // The model is loaded. Before that every call is refused.
  void Loaded();
  bool loaded() const;

  // Begins a call, if it may run now. Configure must have a larger epoch than all before it; Warmup
  // and Commit must have the epoch of Configure. The plans of Execute carry it themselves.
  absl::Status Begin(FormationCall call, Epoch epoch = Epoch());

  // Ends the running call.
  void End(FormationCall call, bool ok);

  // A call of the second driver begins or ends. `keeps`: the driver still has sequences.
  absl::Status BeginSecond();
  void EndSecond(bool keeps);

  // The second driver formed the group or lost it. A native driver must start with Configure.
  void SecondFormed();
  bool second_formed() const;

 private:
  absl::Status CheckEpoch(FormationCall call, Epoch epoch) const;

  mutable std::mutex mutex_;
  bool loaded_ = false;
  bool running_ = false;
  FormationCall current_ = FormationCall::kConfigure;   // the running call, when running_
  FormationCall expected_ = FormationCall::kConfigure;  // Configure is allowed at any time too
  Epoch epoch_;
  std::uint32_t second_calls_ = 0;
  bool second_keeps_ = false;
  bool second_formed_ = false;  // the present group is that of the second driver
};

}  // namespace penstock::shard
