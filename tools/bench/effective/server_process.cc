#include "tools/bench/effective/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <fstream>
#include <string_view>

namespace penstock::bench::effective {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::size_t kLastLines = 8;

std::string LastLines(const std::string& path) {
  std::ifstream file(path);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > kLastLines) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

// In the child: async-signal-safe calls only.
[[noreturn]] void Become(char* const* argv, int output, int log) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  dup2(output, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execvp(argv[0], argv);
  constexpr std::string_view kWhy = "it cannot be executed\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWhy.data(), kWhy.size());
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    const std::vector<std::string>& command, const std::string& log_file) {
  const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (log < 0) return absl::UnavailableError("cannot write `" + log_file + "`");
  std::array<int, 2> pipes{};
  if (pipe2(pipes.data(), O_CLOEXEC) != 0) {
    close(log);
    return absl::UnavailableError(std::string("pipe: ") + std::strerror(errno));
  }
  std::vector<char*> argv;
  for (const std::string& part : command) argv.push_back(const_cast<char*>(part.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) Become(argv.data(), pipes[1], log);
  close(pipes[1]);
  close(log);
  if (pid < 0) {
    close(pipes[0]);
    return absl::UnavailableError(std::string("fork: ") + std::strerror(errno));
  }
  std::unique_ptr<ServerProcess> server(new ServerProcess(pid, pipes[0]));
  if (server->ReadAddress()) return server;
  server->Stop();
  return absl::UnavailableError("`" + command.front() + "` ended before it was ready" +
                                LastLines(log_file));
}

// The launcher prints one block when it is ready, with a line "address: http://HOST:PORT", or one
// record with "address":"http://HOST:PORT".
bool ServerProcess::ReadAddress() {
  std::string text;
  std::array<char, 4096> bytes{};
  while (true) {
    const std::size_t at = text.find(kScheme, std::min(text.find("address"), text.size()));
    const std::size_t end = text.find_first_of("\"\n", std::min(at, text.size()));
    if (end != std::string::npos) {
      const std::string address = text.substr(at + kScheme.size(), end - at - kScheme.size());
      const std::size_t colon = address.rfind(':');
      if (colon == std::string::npos) return false;
      host_ = address.substr(0, colon);
      const char* const port = address.data() + colon + 1;
      return std::from_chars(port, address.data() + address.size(), port_).ec == std::errc();
    }
    const ssize_t count = read(output_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

void ServerProcess::Stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  close(output_);
  pid_ = 0;
}

}  // namespace penstock::bench::effective
