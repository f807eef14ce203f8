// Tells a server of Penstock from another program on an address that is taken.
#pragma once

#include <optional>
#include <string>

namespace penstock::launcher {

struct RunningServer {
  std::string url;
  std::string version;
  bool ready = false;  // GET /health is answered with 200
};

// The Penstock server that answers GET /info there; nullopt if none does within a second. Blocks.
std::optional<RunningServer> FindRunningServer(const std::string& host, int port);

}  // namespace penstock::launcher
