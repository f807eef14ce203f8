// Children that end because a limit leaves them too little memory.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace penstock::launcher {

// Whether a line says that memory or a thread could not be had.
bool SaysNoMemory(std::string_view line);

// ": `ulimit -v 500000` (KiB) leaves too little memory"; empty without such a limit. Children have
// the limits of this process.
std::string AddressLimitRemedy();

// Returns the last line that reports an out-of-memory error, with the limit that caused it. Returns
// an empty text if no line reports one, or if there is no limit.
std::string MemoryLimitError(const std::deque<std::string>& lines);

}  // namespace penstock::launcher
