// A penstock-launcher that the comparison starts for one mode. The destructor stops it.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::bench::effective {

class ServerProcess {
 public:
  // Returns when the server is ready. Its log is written to `log_file`; an error shows the last
  // lines.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      const std::vector<std::string>& command, const std::string& log_file);
  ~ServerProcess() { Stop(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Sends SIGTERM and waits for the end. The launcher drains within its own time limits.
  void Stop();

  const std::string& host() const { return host_; }
  std::uint16_t port() const { return port_; }

 private:
  ServerProcess(pid_t pid, int output) : pid_(pid), output_(output) {}
  bool ReadAddress();  // false: it ended before it was ready

  pid_t pid_;
  int output_;  // its standard output
  std::string host_;
  std::uint16_t port_ = 0;
};

}  // namespace penstock::bench::effective
