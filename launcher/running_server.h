// Tells a server of Penstock from another program on an address that is taken.
#pragma once

#include <string>

namespace penstock::launcher {

// The URL of the Penstock server that answers GET /info there; empty if none does within a second.
// Blocks.
std::string RunningPenstock(const std::string& host, int port);

}  // namespace penstock::launcher
