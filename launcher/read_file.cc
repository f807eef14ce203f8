#include "launcher/read_file.h"

#include <absl/status/status.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "launcher/unique_fd.h"

namespace penstock::launcher {

absl::StatusOr<std::string> ReadFile(const std::string& path, const std::string& name) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 65536> buffer;
  ssize_t size = file.open() ? 1 : -1;
  while (size > 0) {
    size = ::read(file.get(), buffer.data(), buffer.size());
    if (size > 0) text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  if (size == 0) return text;
  return absl::InvalidArgumentError(name + " cannot be read: " + std::strerror(errno));
}

}  // namespace penstock::launcher
