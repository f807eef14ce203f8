// Files that a server keeps for its next start. Their contents decide what the server does. So a
// file is used only if it is a regular file that belongs to the user of the process or to root and
// is not writable by everybody. New files have mode 0600.
//
// Threads: any.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace penstock {

// An open file; closes it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Opens a kept file for reading. NotFound if there is none; other errors name the file and say why
// it must not be used.
absl::StatusOr<Descriptor> OpenKept(const std::string& path);

// A new version of a kept file, under another name until Finish. The destructor removes it if it
// was not finished.
class UnfinishedFile {
 public:
  // Empty, for reading and writing. Several may be written for the same path; the last to finish
  // stays. Errors name the folder.
  static absl::StatusOr<UnfinishedFile> Create(std::string path);
  ~UnfinishedFile();
  UnfinishedFile(UnfinishedFile&&) = default;

  int fd() const { return file_.get(); }
  // Atomically replaces the kept file.
  absl::Status Finish();

 private:
  UnfinishedFile(std::string path, std::string unfinished, Descriptor file)
      : path_(std::move(path)), unfinished_(std::move(unfinished)), file_(std::move(file)) {}

  std::string path_;
  std::string unfinished_;
  Descriptor file_;  // none once finished or moved from
};

// Whether the name is that of a kept file with this suffix, finished or not.
bool IsKeptName(const std::filesystem::path& name, std::string_view suffix);

// Makes the folder with mode 0700 unless it exists. Returns its path; or logs a warning that names
// the option, and returns an empty string.
std::string OpenKeptFolder(std::string_view option, const std::string& path);

// All `bytes` from `offset` on. False: it failed, or the file ends before.
bool ReadAt(int fd, std::byte* out, std::size_t bytes, std::size_t offset);
bool WriteAt(int fd, const std::byte* from, std::size_t bytes, std::size_t offset);

}  // namespace penstock
