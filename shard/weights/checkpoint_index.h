// model.safetensors.index.json: which tensor lies in which file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace penstock::shard {

struct CheckpointIndex {
  std::map<std::string, std::string> file_of;  // tensor -> file name in the same folder
  std::optional<std::uint64_t> total_bytes;    // metadata.total_size
};

// File names are plain (letters, digits, '.', '_', '-'; not beginning with '.') and end in
// ".safetensors". InvalidArgument otherwise; messages do not name the index file.
absl::StatusOr<CheckpointIndex> ParseCheckpointIndex(const std::string& text);

// Reads a text file of at most `limit` bytes. Errors: NotFound, or InvalidArgument with the sizes.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, std::uint64_t limit);

}  // namespace penstock::shard
