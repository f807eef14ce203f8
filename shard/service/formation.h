// The order of calls that form a group: Configure -> Warmup -> Commit -> Execute. A call out of
// order is refused with FAILED_PRECONDITION and the name of the call that was expected; so is a
// second call while one is running, which makes Execute the seat of the one driver.
//
// A failed call, or an Execute that ended with an error, leads back to Configure. An Execute that
// ended well leaves the group committed: the next driver may open it.
//
// A second driver (shard/tgi) has no stream to sit on: it holds the seat while one of its calls is
// on its way and as long as it keeps sequences. Who comes first has the seat; the other is refused
// with FAILED_PRECONDITION. Taking the seat from a second driver that is idle ends its group.
//
// Thread-safe: the thread of the calls begins them, the model thread ends them.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <mutex>

#include "common/ids.h"

namespace penstock::shard {

enum class FormationCall { kConfigure, kWarmup, kCommit, kExecute };

class Formation {
 public:
  // Loading has ended well. Before that every call is refused.
  void Loaded();
  bool loaded() const;

  // Takes the one place of a running call. Configure brings a new epoch (above all before it);
  // Warmup and Commit must name the epoch of Configure; Execute's plans carry it themselves.
  absl::Status Begin(FormationCall call, Epoch epoch = Epoch());

  // The running call is over.
  void End(FormationCall call, bool ok);

  // A call of the second driver, from its arrival until its answer. `keeps`: sequences stay behind.
  absl::Status BeginSecond();
  void EndSecond(bool keeps);

  // The second driver formed the group, or gave it up: a native driver must Configure anew.
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
  bool second_formed_ = false;  // the group that stands is the second driver's
};

}  // namespace penstock::shard
