// The weights of a model folder as one table of tensors: a single model.safetensors, or the files
// that model.safetensors.index.json names. Opening reads the headers only.
//
// Threading: immutable after Open; Read may be called from several threads.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shard/weights/safetensors_file.h"

namespace penstock::shard {

struct CheckpointTensor {
  const TensorInfo* info = nullptr;
  std::uint32_t file = 0;
};

class Checkpoint {
 public:
  // Errors are one line and name file, tensor and value.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder);

  const CheckpointTensor* Find(std::string_view name) const;
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }  // sorted by name
  const std::string& FileName(const CheckpointTensor& tensor) const {
    return files_[tensor.file]->name();
  }
  std::uint64_t total_bytes() const { return total_bytes_; }
  // A line per file (SafetensorsFile::Identity); empty if a file has none.
  std::string Identity() const;
  // A line per file (SafetensorsFile::Noted).
  std::string Noted() const;

  // `bytes` bytes from byte `offset` of the tensor.
  absl::Status Read(const CheckpointTensor& tensor, std::uint64_t offset, std::uint64_t bytes,
                    void* out) const {
    return files_[tensor.file]->Read(tensor.info->offset + offset, bytes, out);
  }

 private:
  absl::Status OpenIndexed(const std::string& folder, const std::string& index_path);
  absl::Status BuildTable();

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<CheckpointTensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // into tensors_
  std::uint64_t total_bytes_ = 0;
};

}  // namespace penstock::shard
