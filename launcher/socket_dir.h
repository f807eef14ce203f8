// The private folder of the shard sockets.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "launcher/unique_fd.h"

namespace penstock::launcher {

// A new folder `<base>/penstock-XXXXXX` with mode 0700, removed with everything in it by the
// destructor.
//
// It contains a file `lock`, which is locked while the launcher runs. Create removes folders whose
// lock is free. So the folder of a launcher that was killed stays until the next start of any
// launcher with the same base.
class SocketDir {
 public:
  // An error names the base folder, or the limit on the length of a socket's path.
  static absl::StatusOr<SocketDir> Create(const std::string& base);

  SocketDir(SocketDir&& other) noexcept = default;
  SocketDir& operator=(SocketDir&&) = delete;
  ~SocketDir();

  const std::string& path() const { return path_; }

  // Prefix of the sockets: rank r listens on `<prefix>-<r>`.
  std::string SocketPrefix() const { return path_ + "/shard"; }

 private:
  SocketDir() = default;

  std::string path_;
  UniqueFd lock_;
};

// --socket-dir, else $XDG_RUNTIME_DIR if it is a folder that can be written, else /tmp.
std::string SocketBase(const std::string& option);

}  // namespace penstock::launcher
