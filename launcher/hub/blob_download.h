// The bytes of a download that are on disk. A later start continues an interrupted download, and
// verifies its contents.
//
//   <blob>.penstock-part    the bytes, each at its offset
//   <blob>.penstock-ranges  lines of "first end": the ranges that are complete
//
// A complete download is renamed to <blob>, and the ranges file is removed. Errors name the path.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/unique_fd.h"

namespace penstock::hub {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;  // not included
  std::uint64_t size() const { return end - first; }
};

class BlobDownload {
 public:
  // `etag` is the hub's name of the contents: their SHA-256 (64 hex digits), or the SHA-1 of their
  // git object (40). With any other name only the size is verified.
  BlobDownload(std::filesystem::path blob, std::string etag, std::uint64_t size);

  absl::Status Open();
  std::uint64_t size() const { return size_; }
  std::uint64_t present() const { return present_; }  // bytes on disk
  bool complete() const { return present_ == size_; }

  // Takes at most `most` bytes that are neither on disk nor taken; nullopt if there are none.
  std::optional<ByteRange> Take(std::uint64_t most);
  // Returns taken bytes that did not arrive.
  void GiveBack(ByteRange range);

  absl::Status Write(std::uint64_t offset, std::string_view bytes);
  // Records that the bytes of the range were written, for a later start.
  absl::Status Record(ByteRange range);

  // Verifies a complete download and gives the blob its name. DataLoss means that the contents were
  // wrong. They were removed, and Open starts the download again.
  absl::Status Finish();

 private:
  absl::Status ReadRecords();
  void AddPresent(ByteRange range);
  absl::Status Verify() const;
  absl::Status Error(const std::filesystem::path& path) const;

  std::filesystem::path blob_;
  std::filesystem::path part_;
  std::filesystem::path ranges_;
  std::string etag_;
  std::uint64_t size_;
  std::uint64_t present_ = 0;
  std::map<std::uint64_t, std::uint64_t> have_;     // disjoint [first, end) on disk
  std::map<std::uint64_t, std::uint64_t> missing_;  // disjoint, neither on disk nor taken
  launcher::UniqueFd part_fd_;
  launcher::UniqueFd ranges_fd_;
};

}  // namespace penstock::hub
