// The header of a safetensors file: 8 bytes of length, a JSON object, then the data.
// Format: huggingface/safetensors, README.md and safetensors/src/tensor.rs. Headers are untrusted,
// so every rule of the format is checked before a number in it is used.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/dtype.h"

namespace penstock::shard {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // limit of the format
inline constexpr std::size_t kMaxTensorNameBytes = 512;        // limits of our own
inline constexpr std::size_t kMaxTensorCount = 1'000'000;
inline constexpr std::size_t kMaxTensorRank = 16;

struct TensorInfo {
  std::string name;
  std::string_view type;       // name in the file, e.g. "BF16"; points to a static table
  std::optional<DType> dtype;  // nothing: a type of the format that Penstock does not load
  std::vector<std::uint64_t> shape;
  std::uint64_t offset = 0;  // of the first byte, from the start of the file
  std::uint64_t bytes = 0;
};

// Parses a header. `json` is its text, `data_bytes` the size of the data after it, and
// `file_bytes_before` 8 plus its length. Returns the tensors in order of offset, or InvalidArgument
// with tensor, value and limit in one line. The caller adds the file.
absl::StatusOr<std::vector<TensorInfo>> ParseSafetensorsHeader(std::string_view json,
                                                               std::uint64_t file_bytes_before,
                                                               std::uint64_t data_bytes);

// "is cut short: the file has 10 bytes, its header calls for 20; fetch it again". `header_bytes`
// with the 8 of its length, `data_bytes` of the data after it.
absl::Status CutShort(std::uint64_t file_bytes, std::uint64_t header_bytes,
                      std::uint64_t data_bytes);

// A tensor has a name of at most kMaxTensorNameBytes, without control characters: it is one line of
// a message.
absl::Status CheckTensorName(std::string_view name);

// "[2, 3]".
std::string ShapeText(const std::vector<std::uint64_t>& shape);

}  // namespace penstock::shard
