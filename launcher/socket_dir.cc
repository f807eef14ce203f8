#include "launcher/socket_dir.h"

#include <absl/status/status.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace penstock::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "penstock-";
constexpr std::size_t kSuffixLength = 6;
constexpr std::size_t kLongestSocketName = sizeof("/shard-63");

bool IsOurs(const fs::path& path) {
  const std::string name = path.filename();
  struct stat info = {};
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kSuffixLength &&
         ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// Whether the lock is free, which means that the launcher of the folder has ended. A folder without
// a lock file may be just being created, so it is kept.
bool IsAbandoned(const fs::path& path) {
  const UniqueFd lock(::open((path / "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return lock.open() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

void RemoveAbandoned(const std::string& base) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(base, error)) {
    if (!IsOurs(entry.path()) || !IsAbandoned(entry.path())) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

// Locks the file before it gets its name.
absl::StatusOr<UniqueFd> MakeLock(const std::string& folder) {
  const std::string draft = folder + "/lock.new";
  UniqueFd lock(::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool made = lock.open() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 &&
                    ::rename(draft.c_str(), (folder + "/lock").c_str()) == 0;
  if (!made) return absl::ErrnoToStatus(errno, "cannot lock " + folder);
  return lock;
}

}  // namespace

absl::StatusOr<SocketDir> SocketDir::Create(const std::string& base) {
  RemoveAbandoned(base);
  std::string path = base + "/" + std::string(kPrefix) + std::string(kSuffixLength, 'X');
  const std::size_t limit = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() + kLongestSocketName > limit) {
    return absl::InvalidArgumentError(
        "--socket-dir " + base + ": must be a path of at most " +
        std::to_string(limit - kLongestSocketName - (path.size() - base.size())) +
        " bytes, the system's limit for sockets");
  }
  if (::mkdtemp(path.data()) == nullptr) {
    return absl::InvalidArgumentError("--socket-dir " + base + ": must be a folder that can be " +
                                      "written: " + std::strerror(errno));
  }
  SocketDir dir;
  dir.path_ = path;
  absl::StatusOr<UniqueFd> lock = MakeLock(path);
  if (!lock.ok()) return lock.status();
  dir.lock_ = *std::move(lock);
  return dir;
}

SocketDir::~SocketDir() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string SocketBase(const std::string& option) {
  if (!option.empty()) return option;
  const char* runtime_dir = ::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir != nullptr && *runtime_dir == '/' && ::access(runtime_dir, W_OK | X_OK) == 0) {
    return runtime_dir;
  }
  return "/tmp";
}

}  // namespace penstock::launcher
