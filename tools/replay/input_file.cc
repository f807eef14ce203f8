#include "tools/replay/input_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace penstock::replay {

std::string TakeSource(std::vector<const char*>& words) {
  if (words.size() < 2 || *words[1] == '-') return "";
  const std::string source = words[1];
  words.erase(words.begin() + 1);
  return source;
}

absl::StatusOr<std::string> ReadInputFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) {
    errno = 0;
    text << file.rdbuf();  // fails without an errno if the file is empty
  }
  if (errno != 0) return absl::NotFoundError(path + ": " + std::strerror(errno));
  return std::move(text).str();
}

}  // namespace penstock::replay
