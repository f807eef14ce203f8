// Model files in formats that Penstock does not read.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace penstock {

// Names the format of a folder's files if it is not safetensors, and what to give instead: "its
// format is GGUF (tiny.gguf), which is not read; give ...". Empty if the files show no such format.
std::string OtherFormat(const std::set<std::string>& files);

// The names of the files in a folder, or of the file itself.
std::set<std::string> FilesOf(const std::string& path);

// Whether a file with this name has such a format.
bool HasOtherFormat(std::string_view file);

}  // namespace penstock
