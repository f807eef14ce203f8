#include "shard/service/run_shards.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "common/exit_codes.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/status.h"
#include "shard/service/shard_server.h"

namespace penstock::shard {
namespace {

int LoadExitCode(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return kExitMemory;
  // Options that exclude each other, and values out of the range of the model.
  if (absl::IsUnimplemented(status) || absl::IsOutOfRange(status)) return kExitUsage;
  if (absl::IsUnavailable(status)) return kExitDevice;
  return kExitModel;
}

// Collects the results of loading from the model threads. A failure ends the wait for a signal.
class LoadWatch {
 public:
  LoadWatch(std::size_t ranks, const Notifier& notifier) : notifier_(notifier), waiting_(ranks) {}

  void Done(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    --waiting_;
    error_.Update(status);
    if (!status.ok()) {
      kill(getpid(), SIGTERM);
    } else if (waiting_ == 0 && error_.ok()) {
      notifier_.Ready();
    }
  }

  absl::Status error() const {
    std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  const Notifier& notifier_;
  mutable std::mutex mutex_;
  std::size_t waiting_;
  absl::Status error_;  // the first
};

// Ends the process if it does not stop soon. The model thread may be in a long call, such as a step
// of a large prompt, which the kernel can end at any point: files appear by renaming, and it frees
// the memory.
class StopLimit {
 public:
  explicit StopLimit(int exit_code)
      : thread_([exit_code](const std::stop_token& stopped) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any never;
          never.wait_for(lock, stopped, kStopLimit, [] { return false; });
          if (stopped.stop_requested()) return;
          log::Info("the model thread is in a long call, which is given up");
          ::_exit(exit_code);
        }) {}

 private:
  static constexpr std::chrono::milliseconds kStopLimit{1500};

  std::jthread thread_;
};

int Fail(const absl::Status& status, int exit_code, const Notifier& notifier) {
  notifier.Failed(Message(status));
  return exit_code;
}

}  // namespace

int RunShards(std::vector<HostedShard> shards, const Notifier& notifier) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  RaiseOpenFiles();  // a checkpoint may have hundreds of files
  LoadWatch loads(shards.size(), notifier);
  std::vector<std::unique_ptr<ShardServer>> servers;
  for (HostedShard& shard : shards) {
    ShardServerOptions options;
    options.listen = shard.listen;
    options.second_driver = shard.second_driver;
    options.on_progress = [&notifier](const v1::LoadProgress& progress) {
      notifier.Progress(progress.stage(), progress.bytes_done(), progress.bytes_total(), "bytes");
    };
    options.on_loaded = [&loads](const absl::Status& status) { loads.Done(status); };
    auto server = ShardServer::Start(std::move(shard.engine), std::move(options));
    if (!server.ok()) return Fail(server.status(), kExitAddress, notifier);
    log::Info("listening on " + (*server)->address());
    servers.push_back(*std::move(server));
  }
  int signal = 0;
  sigwait(&signals, &signal);
  const absl::Status outcome = loads.error();
  if (outcome.ok()) log::Info("stopping");
  const int exit_code = outcome.ok() ? kExitOk : Fail(outcome, LoadExitCode(outcome), notifier);
  const StopLimit limit(exit_code);
  // In reverse order: the first server may have made the directory, and removes it when it is
  // empty.
  while (!servers.empty()) servers.pop_back();
  return exit_code;
}

}  // namespace penstock::shard
