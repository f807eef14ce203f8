#include "common/kept_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "common/log.h"
#include "common/status.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr int kCarefully = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

std::string ErrorText() { return std::generic_category().message(errno); }

bool IsOurs(const struct stat& info) { return info.st_uid == ::geteuid() || info.st_uid == 0; }

bool IsForeign(const struct stat& info) { return !IsOurs(info) || (info.st_mode & S_IWOTH) != 0; }

// For reading and writing, made for this user alone, or there already and nobody else's; what is in
// it stays.
absl::StatusOr<Descriptor> OpenForUs(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | kCarefully, S_IRUSR | S_IWUSR));
  struct stat info = {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    return absl::UnavailableError(path + ": " + ErrorText());
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(path + " is not a regular file");
  }
  if (IsForeign(info)) return absl::PermissionDeniedError(path + " " + WhoElseWrites(info));
  return file;
}

// Whether the name still leads to the file: another process may have finished it meanwhile.
bool IsAt(int fd, const std::string& path) {
  struct stat opened = {};
  struct stat named = {};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::string WhoElseWrites(const struct stat& info) {
  if (!IsOurs(info)) return "belongs to user " + std::to_string(info.st_uid);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return "";
  char text[64];
  std::snprintf(text, sizeof text, "may be written by %s (mode %04o)",
                (info.st_mode & S_IWOTH) != 0 ? "everybody" : "its group",
                static_cast<unsigned>(info.st_mode & 07777));
  return text;
}

KeptFile OpenKept(const std::string& path, const KeptKind& kind) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  const std::string name = std::string(kind.name) + " " + path;
  const std::string decides(kind.decides);
  KeptFile kept;
  if (S_ISREG(info.st_mode)) kept.file = Descriptor(::open(path.c_str(), O_RDONLY | kCarefully));
  if (kept.file && ::fstat(kept.file.get(), &info) != 0) info = {};
  if (!S_ISREG(info.st_mode)) {
    log::Warn(name + " is not a regular file; this start goes without");
    return {Descriptor(), true};
  }
  if (!kept.file) {
    log::Warn(name + " cannot be read: " + ErrorText() + "; it is made anew");
    return {};
  }
  const std::string who = WhoElseWrites(info);
  if (IsForeign(info)) {
    log::Warn(name + " " + who + ": who writes it decides " + decides +
              ", so it is not used; it is made anew");
    return {};
  }
  if (!who.empty()) log::Warn(name + " " + who + ", who can change " + decides);
  return kept;
}

absl::StatusOr<std::optional<UnfinishedFile>> UnfinishedFile::Open(std::string path) {
  std::string unfinished = path + std::string(kSuffix);
  PENSTOCK_ASSIGN_OR_RETURN(Descriptor file, OpenForUs(unfinished));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 || !IsAt(file.get(), unfinished)) {
    return std::nullopt;
  }
  UnfinishedFile made(std::move(path), std::move(unfinished), std::move(file));
  if (::ftruncate(made.fd(), 0) != 0) return absl::UnavailableError(ErrorText());
  return made;
}

UnfinishedFile::~UnfinishedFile() {
  if (file_) ::unlink(unfinished_.c_str());
}

absl::Status UnfinishedFile::Finish() {
  if (::rename(unfinished_.c_str(), path_.c_str()) != 0) return absl::UnavailableError(ErrorText());
  file_ = Descriptor();
  return absl::OkStatus();
}

bool IsKeptName(const fs::path& name, std::string_view suffix) {
  const bool unfinished = name.extension() == UnfinishedFile::kSuffix;
  return (unfinished ? name.stem() : name).extension() == suffix;
}

std::string OpenKeptFolder(std::string_view option, std::string path) {
  const std::string name(option);
  std::error_code ec;
  if (fs::create_directories(path, ec)) fs::permissions(path, fs::perms::owner_all, ec);
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    const std::string why = ec ? " (" + ec.message() + ")" : "";
    log::Warn("`" + name + "` must be a folder or a path where one can be made" + why +
              "; nothing is kept. Given: " + path);
    return "";
  }
  const bool others_cannot_remove = IsOurs(info) && (info.st_mode & S_ISVTX) != 0;
  if (const std::string who = WhoElseWrites(info); !who.empty() && !others_cannot_remove) {
    log::Warn("the folder of `" + name + "`, " + path + ", " + who +
              ": others can remove what is kept there; their own files are not used");
  }
  return path;
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
