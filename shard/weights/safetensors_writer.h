// Writes a safetensors file as a stream: the table of tensors first, then their bytes in order.
//
//   SafetensorsWriter writer(path, table);
//   for each tensor of the table: writer.Append(bytes) any number of times
//   status = writer.Finish();
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/dtype.h"

namespace penstock::shard {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> shape;
  std::uint64_t Bytes() const;
};

class SafetensorsWriter {
 public:
  // Finish returns the first error.
  SafetensorsWriter(const std::string& path, const std::vector<TensorSpec>& table);

  void Append(std::span<const std::byte> bytes);

  // Fails if other than the table's bytes were appended, or if writing failed.
  absl::Status Finish();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::uint64_t remaining_ = 0;
  absl::Status status_;
};

}  // namespace penstock::shard
