// What --model-id names when it is neither a model in safetensors nor a model of the hub.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace penstock::hub {

// Names a format that Penstock does not read, and what to give instead: "its format is GGUF
// (tiny.gguf), which is not read; give ...". Empty if the files show no such format.
std::string OtherFormat(const std::set<std::string>& files);

// The names of the files in a folder, or of the file itself.
std::set<std::string> FilesOf(const std::string& path);

// Why a `model` that does not exist here must be a path and no model id: its form, or its first
// part, which exists here. Names the nearest folder. nullopt: it may be a model id.
std::optional<std::string> MissingFolder(const std::string& model);

}  // namespace penstock::hub
