// One open safetensors file: its checked header, and reads of byte ranges.
//
// Threading: Read may be called from several threads.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shard/weights/safetensors_header.h"

namespace penstock::shard {

class SafetensorsFile {
 public:
  // Messages begin with the last part of `path`. A symbolic link is followed only into a folder
  // named "blobs", as in a hub cache.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in order of offset
  // Path, size, time of the last change, and checksums of the header and of pieces of every tensor.
  // Equal text means the same file as before. One line; empty if the file cannot be read.
  std::string Identity() const;
  // The time of the last change of the file or of its inode (ctime), which no program can set.
  // Another time can mean another file. It also changes with links, owner and mode. Empty if it is
  // not known.
  std::string Noted() const;

  // Fills `out`. Errors: DataLoss if the file became shorter, Unavailable if reading fails.
  absl::Status Read(std::uint64_t offset, std::uint64_t bytes, void* out) const;

 private:
  SafetensorsFile(std::string name, std::string path, int fd)
      : name_(std::move(name)), path_(std::move(path)), fd_(fd) {}
  absl::Status ReadHeader();
  bool BeginsHeader(std::uint64_t size) const;
  absl::StatusOr<std::uint64_t> SampledChecksum() const;

  std::string name_;
  std::string path_;  // the target of a hub cache's link
  int fd_;
  std::uint64_t header_checksum_ = 0;
  std::vector<TensorInfo> tensors_;
};

}  // namespace penstock::shard
