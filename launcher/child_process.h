// One child of the launcher: started in its own process group, tied to the launcher's life, with
// its output and its notices on descriptors that the launcher polls. Linux 5.4 or later (pidfd).
// Used by one thread: a child dies with the thread that started it.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/unique_fd.h"

namespace penstock::launcher {

struct ChildSpec {
  std::string name;                      // "router", "shard-0"
  std::optional<int> rank;               // shards only
  int group = 0;                         // replica group; shards only
  std::string program;                   // path of the executable
  std::vector<std::string> arguments;    // without the program
  std::vector<std::string> environment;  // NAME=value, added to the launcher's own
  bool takes_hangup = false;             // SIGHUP is for it, and does not stop the server
};

// How a process ended.
struct ExitStatus {
  bool by_signal = false;
  int code = 0;  // the signal's number, or the exit status

  std::string Describe() const;  // "was killed by signal 9 (SIGKILL)", "exited with status 3"
};

class ChildProcess {
 public:
  // NotFound or another error if the program cannot be started; nothing is left behind then.
  //
  // In the child: standard input is /dev/null; output and errors go to one pipe; signals are as a
  // shell gives them; the kernel sends SIGKILL when the launcher dies, however it dies.
  static absl::StatusOr<ChildProcess> Spawn(const ChildSpec& spec);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // kills and collects it if it still runs

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }      // readable once the process has ended
  int output() const { return output_.get(); }    // non-blocking; standard output and error
  int notices() const { return notices_.get(); }  // non-blocking; lines of common/notify.h

  void CloseOutput() { output_.Close(); }
  void CloseNotices() { notices_.Close(); }

  void Signal(int signal) const;  // to the process itself
  void Kill() const;              // SIGKILL to its whole process group

  // The last that the kernel told of it: true that it was stopped, false that it goes on, nullopt
  // nothing new. SIGCHLD says when to ask.
  std::optional<bool> TakeStop();

  // Collects the process if it has ended, with what is left of its group.
  std::optional<ExitStatus> Reap();

 private:
  ChildProcess() = default;

  pid_t pid_ = -1;
  bool running_ = false;
  UniqueFd pidfd_;
  UniqueFd output_;
  UniqueFd notices_;
};

}  // namespace penstock::launcher
