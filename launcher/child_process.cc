#include "launcher/child_process.h"

#include <absl/status/status.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/notify.h"

namespace penstock::launcher {
namespace {

constexpr int kNotifyFd = 3;  // one digit, so that a shell script can be a child too

absl::Status SystemError(const std::string& what, int error) {
  return absl::ErrnoToStatus(error, what);
}

// The ends of pipes and sockets for the launcher and for the child, and the pipe that reports a
// failed start.
struct Channels {
  UniqueFd output;
  UniqueFd child_output;
  UniqueFd notices;
  UniqueFd child_notices;
  UniqueFd start_error;
  UniqueFd child_start_error;
};

absl::Status OpenPipe(UniqueFd& read_end, UniqueFd& write_end) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return SystemError("pipe", errno);
  read_end = UniqueFd(fds[0]);
  write_end = UniqueFd(fds[1]);
  return absl::OkStatus();
}

absl::StatusOr<Channels> OpenChannels() {
  Channels channels;
  absl::Status status = OpenPipe(channels.output, channels.child_output);
  if (status.ok()) status = OpenPipe(channels.start_error, channels.child_start_error);
  if (!status.ok()) return status;
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return SystemError("socketpair", errno);
  }
  channels.notices = UniqueFd(sockets[0]);
  channels.child_notices = UniqueFd(sockets[1]);
  for (int fd : {channels.output.get(), channels.notices.get()}) {
    if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return SystemError("fcntl", errno);
  }
  return channels;
}

std::vector<std::string> MakeEnvironment(const ChildSpec& spec) {
  std::vector<std::string> result = spec.environment;
  result.push_back(std::string(kNotifyVariable) + "=" + std::to_string(kNotifyFd));
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& own : result) replaced = replaced || own.starts_with(name);
    if (!replaced) result.push_back(text);
  }
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Runs between fork and exec: system calls only.
class ChildSide {
 public:
  ChildSide(const Channels& channels, pid_t launcher, const char* program,
            const std::vector<char*>& arguments, const std::vector<char*>& environment)
      : channels_(channels),
        launcher_(launcher),
        program_(program),
        arguments_(arguments),
        environment_(environment) {}

  [[noreturn]] void Run() const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher_) ::_exit(127);  // the launcher ended before the line above
    ResetSignals();
    // Moves the descriptors above the numbers used below.
    const int start_error = ::fcntl(channels_.child_start_error.get(), F_DUPFD_CLOEXEC, 10);
    if (PlaceDescriptors()) ::execve(program_, arguments_.data(), environment_.data());
    const int error = errno;
    (void)!::write(start_error, &error, sizeof error);
    ::_exit(127);
  }

 private:
  bool PlaceDescriptors() const {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int output = channels_.child_output.get();
    const int notices = channels_.child_notices.get();
    if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) return false;
    if (::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0) return false;
    if (notices == kNotifyFd) return ::fcntl(notices, F_SETFD, 0) == 0;
    return ::dup2(notices, kNotifyFd) >= 0;
  }

  static void ResetSignals() {
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  const Channels& channels_;
  pid_t launcher_;
  const char* program_;
  const std::vector<char*>& arguments_;
  const std::vector<char*>& environment_;
};

// A raw system call, since glibc 2.36 declares the function without C linkage.
UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// The errno of a failed start; 0 once the program runs (its start closes the pipe).
int WaitForStart(int fd) {
  int error = 0;
  ssize_t size = 0;
  do {
    size = ::read(fd, &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  return size == sizeof error ? error : 0;
}

}  // namespace

std::string ExitStatus::Describe() const {
  if (!by_signal) return "exited with status " + std::to_string(code);
  const char* name = ::sigabbrev_np(code);
  std::string text = "was killed by signal " + std::to_string(code);
  if (name != nullptr) text += std::string(" (SIG") + name + ")";
  return text;
}

absl::StatusOr<ChildProcess> ChildProcess::Spawn(const ChildSpec& spec) {
  absl::StatusOr<Channels> channels = OpenChannels();
  if (!channels.ok()) return channels.status();
  std::vector<std::string> arguments = {spec.program};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  const std::vector<std::string> environment = MakeEnvironment(spec);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);
  const ChildSide child_side(*channels, ::getpid(), spec.program.c_str(), argument_pointers,
                             environment_pointers);
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError("cannot start " + spec.program, errno);
  if (pid == 0) child_side.Run();
  ::setpgid(pid, pid);  // in the parent too, since either may run first
  ChildProcess child;
  child.pid_ = pid;
  child.running_ = true;
  child.pidfd_ = OpenPidfd(pid);
  const int pidfd_error = errno;
  channels->child_start_error.Close();
  const int start_error = WaitForStart(channels->start_error.get());
  if (start_error != 0) return SystemError("cannot start " + spec.program, start_error);
  if (!child.pidfd_.open()) return SystemError("pidfd_open (needs Linux 5.4)", pidfd_error);
  child.output_ = std::move(channels->output);
  child.notices_ = std::move(channels->notices);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(other.pid_),
      running_(std::exchange(other.running_, false)),
      pidfd_(std::move(other.pidfd_)),
      output_(std::move(other.output_)),
      notices_(std::move(other.notices_)) {}

ChildProcess::~ChildProcess() {
  if (!running_) return;
  Kill();
  ::waitpid(pid_, nullptr, 0);
}

void ChildProcess::Signal(int signal) const {
  if (running_) ::kill(pid_, signal);
}

void ChildProcess::Kill() const {
  if (running_) ::kill(-pid_, SIGKILL);
}

std::optional<bool> ChildProcess::TakeStop() {
  siginfo_t info = {};
  const int options = WSTOPPED | WCONTINUED | WNOHANG;
  if (!running_ || ::waitid(P_PID, static_cast<id_t>(pid_), &info, options) != 0)
    return std::nullopt;
  if (info.si_pid == 0) return std::nullopt;
  return info.si_code == CLD_STOPPED;
}

std::optional<ExitStatus> ChildProcess::Reap() {
  siginfo_t info = {};
  const int options = WEXITED | WNOHANG | WNOWAIT;
  if (!running_ || ::waitid(P_PID, static_cast<id_t>(pid_), &info, options) != 0)
    return std::nullopt;
  if (info.si_pid == 0) return std::nullopt;
  // Kills the rest of the group before waitid frees the child's number, since another process group
  // could get that number afterwards.
  Kill();
  ::waitpid(pid_, nullptr, 0);
  running_ = false;
  pidfd_.Close();
  return ExitStatus{.by_signal = info.si_code != CLD_EXITED, .code = info.si_status};
}

}  // namespace penstock::launcher
