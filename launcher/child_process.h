// A child process of the launcher, in its own process group. The launcher polls descriptors for its
// output and its notices. The kernel kills the child when the thread that started it ends, so use
// it from one thread. Needs Linux 5.4 (pidfd).
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
  bool takes_hangup = false;             // SIGHUP goes to it instead of stopping the server
};

// How a process ended.
struct ExitStatus {
  bool by_signal = false;
  int code = 0;  // the signal's number, or the exit status

  std::string Describe() const;  // "was killed by signal 9 (SIGKILL)", "exited with status 3"
};

class ChildProcess {
 public:
  // Starts the program. An error (for example NotFound) leaves no process.
  //
  // In the child, standard input is /dev/null, output and errors go to one pipe, and signals have
  // their default actions. The kernel kills it when the launcher ends for any reason.
  static absl::StatusOr<ChildProcess> Spawn(const ChildSpec& spec);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // kills the child if it runs, and waits for its end

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }      // readable once the process has ended
  int output() const { return output_.get(); }    // non-blocking; standard output and error
  int notices() const { return notices_.get(); }  // non-blocking; lines of common/notify.h

  void CloseOutput() { output_.Close(); }
  void CloseNotices() { notices_.Close(); }

  void Signal(int signal) const;  // to the process itself
  void Kill() const;              // SIGKILL to its whole process group

  // Whether the child was stopped (true) or continued (false) since the last call; nullopt if
  // neither. Call it after SIGCHLD.
  std::optional<bool> TakeStop();

  // If the process has ended, returns its status and kills the rest of its group.
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
