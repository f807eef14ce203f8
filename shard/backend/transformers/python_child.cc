#include "shard/backend/transformers/python_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "common/bad_option.h"
#include "common/status.h"
#include "shard/backend/transformers/child_files.h"

namespace penstock::shard::transformers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "the Python process of --engine transformers";
// Descriptors in the child.
constexpr int kSocket = 3;
constexpr int kProgram = 4;
constexpr int kFirstOther = 5;

bool CanRun(const std::string& path) {
  std::error_code error;
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, error);
}

std::string InPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (CanRun(folder + "/" + name)) return folder + "/" + name;
  }
  return "";
}

// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  // Out of the way of those that the child has.
  void MoveUp() {
    const int higher = ::fcntl(fd_, F_DUPFD_CLOEXEC, kFirstOther);
    ::close(std::exchange(fd_, higher));
  }

 private:
  int fd_;
};

absl::Status Errno(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

// A file in memory with the program of the child.
absl::StatusOr<int> ProgramFile() {
  const std::string_view bytes = Files().front().bytes;
  Descriptor file(::memfd_create("penstock-engine", MFD_CLOEXEC));
  if (file.get() < 0) return Errno("memfd_create");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0) return Errno("the program of the Python process");
    done += static_cast<std::size_t>(written);
  }
  return file.Release();
}

// Runs in the child between fork and exec, where only system calls are safe.
[[noreturn]] void Become(const char* program, char* const* arguments, int socket, int file,
                         pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  if (::dup2(socket, kSocket) < 0 || ::dup2(file, kProgram) < 0) ::_exit(1);
  ::close_range(kFirstOther, ~0u, 0);
  ::execv(program, arguments);
  ::_exit(127);
}

std::string DescribeEnd(int status) {
  if (!WIFSIGNALED(status)) {
    return std::string(kName) + " ended with status " + std::to_string(WEXITSTATUS(status));
  }
  const int signal = WTERMSIG(status);
  return std::string(kName) + " was killed by signal " + std::to_string(signal) + " (SIG" +
         ::sigabbrev_np(signal) + ")" +
         (signal == SIGKILL ? ", as the kernel does when memory runs out" : "");
}

absl::Status ErrorOf(const Frame& reply) {
  const auto* text = reply.header.if_contains("error");
  if (text == nullptr || !text->is_string()) return absl::OkStatus();
  const std::string message(text->as_string());
  const auto* field = reply.header.if_contains("kind");
  const std::string_view kind =
      field != nullptr && field->is_string() ? std::string_view(field->as_string()) : "";
  if (kind == "unavailable") return absl::UnavailableError("--engine transformers: " + message);
  if (kind == "invalid") return absl::InvalidArgumentError(message);
  if (kind == "memory") return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace

absl::StatusOr<std::string> FindPython(const std::string& given) {
  const bool is_path = given.find('/') != std::string::npos;
  if (!given.empty()) {
    const std::string found = is_path ? given : InPath(given);
    if (!found.empty() && CanRun(found)) return found;
    return absl::UnavailableError(
        Message(BadOption("python", given, "a Python interpreter that can be run")));
  }
  const char* environment = std::getenv("VIRTUAL_ENV");
  if (environment != nullptr && *environment != '\0') {
    const std::string found = std::string(environment) + "/bin/python3";
    if (CanRun(found)) return found;
  }
  const std::string found = InPath("python3");
  if (!found.empty()) return found;
  return absl::UnavailableError(
      "--engine transformers: PATH has no python3; install Python 3 or name an interpreter with "
      "--python");
}

absl::StatusOr<std::unique_ptr<PythonChild>> PythonChild::Start(const std::string& python,
                                                                std::uint32_t threads) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return Errno("socketpair");
  }
  Descriptor mine(sockets[0]);
  Descriptor theirs(sockets[1]);
  theirs.MoveUp();
  PENSTOCK_ASSIGN_OR_RETURN(const int program, ProgramFile());
  Descriptor file(program);
  file.MoveUp();
  std::vector<std::string> words = {python, "/proc/self/fd/" + std::to_string(kProgram),
                                    std::to_string(kSocket), std::to_string(threads)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) Become(python.c_str(), arguments.data(), theirs.get(), file.get(), parent);
  return std::unique_ptr<PythonChild>(new PythonChild(pid, mine.Release()));
}

PythonChild::~PythonChild() {
  if (end_.empty()) ::kill(pid_, SIGKILL);
  End();
  ::close(socket_);
}

void PythonChild::End() {
  if (!end_.empty()) return;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  end_ = DescribeEnd(status);
}

absl::Status PythonChild::Lost() {
  if (end_.empty()) {
    // It may have closed the socket without ending.
    ::kill(pid_, SIGTERM);
    End();
  }
  return absl::UnavailableError(end_);
}

absl::Status PythonChild::Send(const boost::json::object& request) {
  const absl::Status sent = WriteFrame(socket_, request);
  return sent.ok() ? sent : Lost();
}

absl::StatusOr<Frame> PythonChild::Call(const boost::json::object& request,
                                        std::span<const std::byte> body, std::uint64_t most_body,
                                        const OnProgress& on_progress) {
  // What cannot be sent may have a reply: the child says why it ends.
  const absl::Status sent = WriteFrame(socket_, request, body);
  if (absl::IsInternal(sent)) return sent;
  while (true) {
    auto reply = ReadFrame(socket_, most_body);
    if (absl::IsUnavailable(reply.status())) return Lost();
    if (!reply.ok()) return reply.status();
    const auto* stage = reply->header.if_contains("progress");
    if (stage == nullptr || !stage->is_string()) {
      PENSTOCK_RETURN_IF_ERROR(ErrorOf(*reply));
      return reply;
    }
    const auto* bytes = reply->header.if_contains("bytes");
    const bool counts = bytes != nullptr && bytes->is_int64();
    const auto size = static_cast<std::uint64_t>(counts ? bytes->as_int64() : 0);
    if (on_progress && !on_progress(stage->as_string(), size)) {
      return absl::CancelledError("the shard is stopping");
    }
  }
}

}  // namespace penstock::shard::transformers
