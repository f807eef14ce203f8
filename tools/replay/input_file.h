// The source of a command, such as an input log: its name among the words, and its contents.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace penstock::replay {

// Takes the source out of the words of a command: the one after the command's name, if it is no
// option. Empty if there is none.
std::string TakeSource(std::vector<const char*>& words);

// Reads a whole file. The error names the path and the cause.
absl::StatusOr<std::string> ReadInputFile(const std::string& path);

}  // namespace penstock::replay
