// Files that a server keeps for its next start, to be quicker then. Who writes such a file decides
// what the server does, so one is taken only if it belongs to the server's user or root and not
// everybody may write it. What its group may write is taken with a warning: files are made for
// their user alone, so that somebody shared this one on purpose, as Kubernetes does with all that
// lies on a volume with an fsGroup.
//
// What is no regular file (a pipe, a folder, a link) was put there by somebody and is left to them:
// opening it could wait for a writer, or do what a device does.
//
// Warnings name the file and go to the log. Threads: any.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
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

// For the warnings: "the weights cache", and what it decides, "what the model says".
struct KeptKind {
  std::string_view name;
  std::string_view decides;
};

struct KeptFile {
  Descriptor file;          // for reading, where there is one that may be taken
  bool left_alone = false;  // what has its name is no regular file, and no new one may replace it
};

KeptFile OpenKept(const std::string& path, const KeptKind& kind);

// A kept file in the making, beside its place and for this user alone. What a process that crashed
// left under its name is taken over. The destructor removes what was not finished.
class UnfinishedFile {
 public:
  static constexpr std::string_view kSuffix = ".tmp";  // behind the kept file's name

  // Empty and for reading and writing. Nothing while another process makes the same file.
  static absl::StatusOr<std::optional<UnfinishedFile>> Open(std::string path);
  ~UnfinishedFile();
  UnfinishedFile(UnfinishedFile&&) = default;

  int fd() const { return file_.get(); }
  // Takes the place of the kept file at once.
  absl::Status Finish();

 private:
  UnfinishedFile(std::string path, std::string unfinished, Descriptor file)
      : path_(std::move(path)), unfinished_(std::move(unfinished)), file_(std::move(file)) {}

  std::string path_;
  std::string unfinished_;
  Descriptor file_;  // none: finished, or moved away
};

// Whether the name is that of a kept file with this suffix, finished or not.
bool IsKeptName(const std::filesystem::path& name, std::string_view suffix);

// The folder, made for this user alone where there is none. Where there can be none: nothing, and a
// warning that names `option`. A warning, too, where others can remove what is kept there.
std::string OpenKeptFolder(std::string_view option, std::string path);

// Who but the user and root can write it: "belongs to user 7", "may be written by everybody (mode
// 0666)"; nobody: nothing.
std::string WhoElseWrites(const struct stat& info);

// All `bytes` from `offset` on. False: it failed, or the file ends before.
bool ReadAt(int fd, std::byte* out, std::size_t bytes, std::size_t offset);
bool WriteAt(int fd, const std::byte* from, std::size_t bytes, std::size_t offset);

}  // namespace penstock
