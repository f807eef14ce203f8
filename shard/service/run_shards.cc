#include "shard/service/run_shards.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "common/exit_codes.h"
#include "common/log.h"
#include "common/status.h"
#include "shard/service/shard_server.h"

namespace penstock::shard {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

int BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

int LoadExitCode(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return kExitMemory;
  if (absl::IsUnimplemented(status)) return kExitUsage;  // options that exclude each other
  if (absl::IsUnavailable(status)) return kExitDevice;
  return kExitModel;
}

// Collects the results of loading from the model threads. A failure wakes the main thread.
class LoadWatch {
 public:
  LoadWatch(std::size_t ranks, const Notifier& notifier)
      : notifier_(notifier), waiting_(ranks), event_(eventfd(0, EFD_CLOEXEC)) {}

  void Done(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    --waiting_;
    if (status.ok()) {
      if (waiting_ == 0 && error_.ok()) notifier_.Ready();
      return;
    }
    if (error_.ok()) error_ = status;
    const std::uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof one);
  }

  absl::Status error() const {
    std::lock_guard lock(mutex_);
    return error_;
  }
  int fd() const { return event_.get(); }

 private:
  const Notifier& notifier_;
  mutable std::mutex mutex_;
  std::size_t waiting_;
  absl::Status error_;
  Descriptor event_;
};

void WaitForEnd(int signal_fd, int event_fd) {
  pollfd fds[] = {{signal_fd, POLLIN, 0}, {event_fd, POLLIN, 0}};
  while (poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
}

int Fail(const absl::Status& status, int exit_code, const Notifier& notifier) {
  log::Error(Message(status));
  notifier.Failed(Message(status));
  return exit_code;
}

}  // namespace

int RunShards(std::vector<HostedShard> shards, const Notifier& notifier) {
  const Descriptor signals(BlockSignals());
  LoadWatch loads(shards.size(), notifier);
  std::vector<std::unique_ptr<ShardServer>> servers;
  for (HostedShard& shard : shards) {
    ShardServerOptions options;
    options.listen = shard.listen;
    options.rank = shard.engine->Facts().rank;
    options.second_driver = shard.second_driver;
    options.on_progress = [&notifier](const LoadStage& progress) {
      notifier.Progress(progress.stage, progress.bytes_done, progress.bytes_total, "bytes");
    };
    options.on_loaded = [&loads](const absl::Status& status) { loads.Done(status); };
    auto server = ShardServer::Start(std::move(shard.engine), std::move(options));
    if (!server.ok()) return Fail(server.status(), kExitAddress, notifier);
    log::Info("listening on " + (*server)->address());
    servers.push_back(*std::move(server));
  }
  WaitForEnd(signals.get(), loads.fd());
  const absl::Status outcome = loads.error();
  if (outcome.ok()) log::Info("stopping");
  // In reverse order: the first server may have made the directory, and removes it when it is
  // empty.
  while (!servers.empty()) servers.pop_back();
  return outcome.ok() ? kExitOk : Fail(outcome, LoadExitCode(outcome), notifier);
}

}  // namespace penstock::shard
