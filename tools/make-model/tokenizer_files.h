// The tokenizer beside a made checkpoint: a copy of a given one, or a byte-level one of our own, so
// that tests need no downloaded files.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::make_model {

struct TokenizerInfo {
  std::uint32_t size = 0;  // highest id + 1
  std::int32_t bos = -1;   // -1 = none
  std::vector<std::int32_t> eos;
};

// What tokenizer.json and tokenizer_config.json of `folder` say.
absl::StatusOr<TokenizerInfo> ReadTokenizer(const std::string& folder);

// Copies the tokenizer's files that exist.
absl::Status CopyTokenizer(const std::string& from, const std::string& to);

// "<pad>" 0, "<s>" 1, "</s>" 2, the 256 bytes, then words that no encoding yields (" t259", …) up
// to `size` ids; with a chat template. `size` is at least kByteTokenizerSize.
inline constexpr std::uint32_t kByteTokenizerSize = 259;
absl::StatusOr<TokenizerInfo> WriteByteTokenizer(const std::string& folder, std::uint32_t size);

absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace penstock::make_model
