#include "shard/service/formation.h"

#include <algorithm>
#include <string>

#include "common/status.h"

namespace penstock::shard {
namespace {

const char* NameOf(FormationCall call) {
  constexpr const char* kNames[] = {"Configure", "Warmup", "Commit", "Execute"};
  return kNames[static_cast<int>(call)];
}

FormationCall After(FormationCall call) {
  const int last = static_cast<int>(FormationCall::kExecute);
  return static_cast<FormationCall>(std::min(static_cast<int>(call) + 1, last));
}

}  // namespace

void Formation::Loaded() {
  std::lock_guard lock(mutex_);
  loaded_ = true;
}

bool Formation::loaded() const {
  std::lock_guard lock(mutex_);
  return loaded_;
}

absl::Status Formation::Begin(FormationCall call, Epoch epoch) {
  std::lock_guard lock(mutex_);
  const std::string name = NameOf(call);
  if (!loaded_) {
    return absl::FailedPreconditionError(
        name + " came while the model is loading: expected the end of WatchLoad first");
  }
  if (running_) {
    const std::string running = NameOf(current_);
    return absl::FailedPreconditionError(
        name + " came while " + running +
        " is running: a shard has one driver at a time, expected its " + running + " to end first");
  }
  if (second_calls_ > 0 || second_keeps_) {
    return absl::FailedPreconditionError(
        name +
        " came while generate.v3 drives this shard: a shard has one driver at a time, expected its "
        "batches to end or ClearCache first");
  }
  if (call != FormationCall::kConfigure && call != expected_) {
    return absl::FailedPreconditionError(name + " came out of order: expected " +
                                         NameOf(expected_));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckEpoch(call, epoch));
  if (call == FormationCall::kConfigure) {
    epoch_ = epoch;
    second_formed_ = false;
  }
  running_ = true;
  current_ = call;
  return absl::OkStatus();
}

absl::Status Formation::CheckEpoch(FormationCall call, Epoch epoch) const {
  const std::string present = std::to_string(epoch_.value());
  if (call == FormationCall::kConfigure && epoch <= epoch_) {
    return absl::FailedPreconditionError(Message(BadValue(
        "epoch", std::to_string(epoch.value()), "above " + present + ", the last group's")));
  }
  const bool named = call == FormationCall::kWarmup || call == FormationCall::kCommit;
  if (named && epoch != epoch_) {
    return absl::FailedPreconditionError(
        Message(BadValue("epoch", std::to_string(epoch.value()), present + ", that of Configure")));
  }
  return absl::OkStatus();
}

void Formation::End(FormationCall call, bool ok) {
  std::lock_guard lock(mutex_);
  running_ = false;
  expected_ = ok ? After(call) : FormationCall::kConfigure;
}

absl::Status Formation::BeginSecond() {
  std::lock_guard lock(mutex_);
  if (running_) {
    const std::string running = NameOf(current_);
    return absl::FailedPreconditionError(
        "generate.v3 was called while " + running +
        " of penstock.v1 is running: a shard has one driver at a time, expected its " + running +
        " to end first");
  }
  ++second_calls_;
  return absl::OkStatus();
}

void Formation::EndSecond(bool keeps) {
  std::lock_guard lock(mutex_);
  --second_calls_;
  second_keeps_ = keeps;
}

void Formation::SecondFormed() {
  std::lock_guard lock(mutex_);
  second_formed_ = true;
  expected_ = FormationCall::kConfigure;
}

bool Formation::second_formed() const {
  std::lock_guard lock(mutex_);
  return second_formed_;
}

}  // namespace penstock::shard
