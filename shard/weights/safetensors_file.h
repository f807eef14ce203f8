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
  // Messages begin with the last part of `path`. A symbolic link is followed only where it has the
  // form of a hub cache's (into a folder named "blobs").
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in order of offset
  // Path, size, time of the last change, and checksums of the header and of pieces of every tensor:
  // tells whether the file is the one of another time. One line; empty where it cannot be read.
  std::string Identity() const;
  // When the system last noted a change of the file or of what is known of it (ctime), which no
  // program can set: another time, perhaps another file. A copy, a new link to it, another owner or
  // mode change it too. Empty where it cannot be asked.
  std::string Noted() const;

  // Fills `out`. DataLoss where the file has become shorter, Unavailable where reading fails.
  absl::Status Read(std::uint64_t offset, std::uint64_t bytes, void* out) const;

 private:
  SafetensorsFile(std::string name, std::string path, int fd)
      : name_(std::move(name)), path_(std::move(path)), fd_(fd) {}
  absl::Status ReadHeader();
  absl::StatusOr<std::uint64_t> SampledChecksum() const;

  std::string name_;
  std::string path_;  // behind a hub cache's link
  int fd_;
  std::uint64_t header_checksum_ = 0;
  std::vector<TensorInfo> tensors_;
};

}  // namespace penstock::shard
