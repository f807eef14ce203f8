// The files of the page, as cmake/EmbedFiles.cmake puts them into the program.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock::router::console {

struct File {
  std::string_view name;  // "console.css"
  std::string_view bytes;
};

std::span<const File> Files();

}  // namespace penstock::router::console
