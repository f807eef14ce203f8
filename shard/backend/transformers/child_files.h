// The files of the Python child, as cmake/EmbedFiles.cmake puts them into the program: one zip,
// which Python runs as it is.
#pragma once

#include <span>
#include <string_view>

namespace penstock::shard::transformers {

struct File {
  std::string_view name;
  std::string_view bytes;
};

std::span<const File> Files();

}  // namespace penstock::shard::transformers
