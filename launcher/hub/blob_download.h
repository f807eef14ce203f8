// The part of a download that is on disk: which bytes of a file are there, so that a start that was
// interrupted goes on where it stopped, and whether they are the right ones.
//
//   <blob>.penstock-part    the bytes, each at its place
//   <blob>.penstock-ranges  "first end" lines: what of them is there
//
// Both disappear when the blob stands under its own name. Errors name the path.
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
  // `etag` is what the hub calls the contents: their SHA-256 (64 hex digits), or the SHA-1 of git's
  // object (40). Others cannot be verified but by the size.
  BlobDownload(std::filesystem::path blob, std::string etag, std::uint64_t size);

  absl::Status Open();
  std::uint64_t size() const { return size_; }
  std::uint64_t present() const { return present_; }  // bytes on disk
  bool complete() const { return present_ == size_; }

  // Bytes that are neither on disk nor taken, at most `most` of them; nothing when there are none.
  std::optional<ByteRange> Take(std::uint64_t most);
  // Puts back what was taken and did not come.
  void GiveBack(ByteRange range);

  absl::Status Write(std::uint64_t offset, std::string_view bytes);
  // The bytes of the range were written; a later start may rely on it.
  absl::Status Record(ByteRange range);

  // Verifies a complete download and gives the blob its name. DataLoss: the contents are wrong;
  // they are gone, and Open begins anew.
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
