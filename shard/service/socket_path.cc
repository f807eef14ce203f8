#include "shard/service/socket_path.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/bad_option.h"
#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr const char* kOption = "shard-uds-path";

std::string Octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(what + ": " + std::strerror(errno));
}

absl::Status PrepareDirectory(const std::string& directory, bool& made) {
  made = mkdir(directory.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return SystemError("cannot make the directory " + directory);
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) return SystemError("cannot look at " + directory);
  if (!S_ISDIR(info.st_mode)) return BadOption(kOption, directory, "in a directory");
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return BadOption(kOption, directory + " (mode " + Octal(info.st_mode) + ")",
                     "in a directory of mode 0700 that belongs to this user");
  }
  return absl::OkStatus();
}

bool HasListener(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const bool connected = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return connected;
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : SystemError("cannot look at " + path);
  }
  if (!S_ISSOCK(info.st_mode)) return BadOption(kOption, path, "free: a file is in its place");
  if (HasListener(path)) return BadOption(kOption, path, "free: another process listens there");
  if (unlink(path.c_str()) != 0) return SystemError("cannot remove the stale socket " + path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> SocketPath(const std::string& prefix, std::uint32_t rank) {
  if (prefix.empty() || prefix.front() != '/' || prefix.back() == '/') {
    return BadOption(kOption, prefix,
                     "an absolute path prefix of Unix sockets; --shard-listen is for TCP");
  }
  std::string path = prefix + "-" + std::to_string(rank);
  constexpr std::size_t kLongest = sizeof(sockaddr_un{}.sun_path) - 1;
  if (path.size() > kLongest) {
    return BadOption(kOption, path + " (" + std::to_string(path.size()) + " bytes)",
                     "at most " + std::to_string(kLongest) + " bytes with the rank");
  }
  return path;
}

absl::Status PrepareSocketPath(const std::string& path, bool& made_directory) {
  const std::string directory = path.substr(0, path.rfind('/'));
  PENSTOCK_RETURN_IF_ERROR(PrepareDirectory(directory.empty() ? "/" : directory, made_directory));
  return RemoveStaleSocket(path);
}

}  // namespace penstock::shard
