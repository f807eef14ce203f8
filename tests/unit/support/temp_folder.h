// A folder of its own for one test, gone when the scope ends.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace penstock {

class TempFolder {
 public:
  TempFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "penstock-test-XXXXXX").string();
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TempFolder() {
    std::error_code ec;
    if (!path_.empty()) std::filesystem::remove_all(path_, ec);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  // Empty where it could not be made.
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Gives the path of the file. Folders in front of its name are made.
  std::string Write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }

 private:
  std::string path_;
};

}  // namespace penstock
