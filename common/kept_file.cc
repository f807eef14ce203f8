#include "common/kept_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/log.h"
#include "common/status.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".tmp";

std::string ErrorText() { return std::generic_category().message(errno); }

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<Descriptor> OpenKept(const std::string& path) {
  // O_NONBLOCK: opening a pipe would wait for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return absl::NotFoundError(path);
  struct stat info = {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    return absl::UnavailableError(path + " cannot be read: " + ErrorText());
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(path + " is not a regular file");
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(path + " belongs to user " + std::to_string(info.st_uid));
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return absl::PermissionDeniedError(path + " is writable by everybody");
  }
  return file;
}

absl::StatusOr<UnfinishedFile> UnfinishedFile::Create(std::string path) {
  std::string unfinished = path + ".XXXXXX" + std::string(kUnfinished);
  Descriptor file(::mkostemps(unfinished.data(), static_cast<int>(kUnfinished.size()), O_CLOEXEC));
  if (!file) {
    return absl::UnavailableError(fs::path(path).parent_path().string() + ": " + ErrorText());
  }
  return UnfinishedFile(std::move(path), std::move(unfinished), std::move(file));
}

UnfinishedFile::~UnfinishedFile() {
  if (file_) ::unlink(unfinished_.c_str());
}

absl::Status UnfinishedFile::Finish() {
  if (::rename(unfinished_.c_str(), path_.c_str()) != 0) return absl::UnavailableError(ErrorText());
  file_ = Descriptor();
  return absl::OkStatus();
}

// "1234.packed" or, unfinished, "1234.packed.x1y2z3.tmp".
bool IsKeptName(const fs::path& name, std::string_view suffix) {
  const bool unfinished = name.extension() == kUnfinished;
  return (unfinished ? name.stem().stem() : name).extension() == suffix;
}

std::string OpenKeptFolder(std::string_view option, const std::string& path) {
  std::error_code ec;
  if (fs::create_directories(path, ec)) fs::permissions(path, fs::perms::owner_all, ec);
  if (fs::is_directory(path)) return path;
  const std::string why = ec ? " (" + ec.message() + ")" : "";
  log::Warn("--" + std::string(option) + " " + path +
            ": must be a folder, or a path where one can be made" + why + "; nothing is kept");
  return "";
}

bool ReadAt(int fd, std::byte* out, std::size_t bytes, std::size_t offset) {
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<std::size_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool WriteAt(int fd, const std::byte* from, std::size_t bytes, std::size_t offset) {
  while (bytes > 0) {
    const ssize_t put = ::pwrite(fd, from, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    from += put;
    offset += static_cast<std::size_t>(put);
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

}  // namespace penstock
