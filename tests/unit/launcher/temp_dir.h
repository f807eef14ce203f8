#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::launcher {

// A folder of its own for one test.
class TempDir {
 public:
  TempDir() {
    std::string text = (std::filesystem::temp_directory_path() / "launcher-test-XXXXXX").string();
    path_ = ::mkdtemp(text.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;

  std::string path() const { return path_; }
  std::string File(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace penstock::launcher
