// The order of calls that form a group: Configure -> Warmup -> Commit -> Execute. A call out of
// order is refused with FAILED_PRECONDITION and the name of the call that was expected; so is a
// second call while one is running, which makes Execute the seat of the one driver.
//
// A failed call, or an Execute that ended with an error, leads back to Configure. An Execute that
// ended well leaves the group committed: the next driver may open it.
//
// Thread-safe: gRPC threads begin calls, the model thread ends them.
#pragma once

#include <absl/status/status.h>

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

 private:
  absl::Status CheckEpoch(FormationCall call, Epoch epoch) const;

  mutable std::mutex mutex_;
  bool loaded_ = false;
  bool running_ = false;
  FormationCall current_ = FormationCall::kConfigure;   // the running call, when running_
  FormationCall expected_ = FormationCall::kConfigure;  // Configure is allowed at any time too
  Epoch epoch_;
};

}  // namespace penstock::shard
