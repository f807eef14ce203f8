// Children that end because a limit leaves them too little memory.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "launcher/child_process.h"

namespace penstock::launcher {

// Whether a line says that memory or a thread could not be had.
bool SaysNoMemory(std::string_view line);

// "`ulimit -v 500000` (KiB) leaves too little memory; raise it or remove it"; empty without such a
// limit. Children have the limits of this process.
std::string AddressLimitError();

// The same if a line of the child reports an out-of-memory error, or if it aborted without a word,
// as an allocator does that gets no memory at all; else empty.
std::string MemoryLimitError(const ExitStatus& exit, const std::deque<std::string>& lines);

}  // namespace penstock::launcher
