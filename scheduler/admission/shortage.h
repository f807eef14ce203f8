// Why the scheduler cannot run a request: not now, or never.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/output.h"

namespace penstock::scheduler {

// Not now: the request needs more of a budget than is available.
struct Shortage {
  Budget budget = Budget::kNone;
  std::uint64_t needed = 0;
  std::uint64_t available = 0;
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

// Never. `message`: one line for the client with field, limit and value.
struct Refusal {
  Shortage shortage;
  std::string message;
};

}  // namespace penstock::scheduler
