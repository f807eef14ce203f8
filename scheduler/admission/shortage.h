// Why something cannot be done: not now, or never.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/output.h"

namespace penstock::scheduler {

// "Not now": `needed` of the budget, `available` of it.
struct Shortage {
  Budget budget = Budget::kNone;
  std::uint64_t needed = 0;
  std::uint64_t available = 0;
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

// "Never here": why, for people and for the client (field, limit and value in one line).
struct Refusal {
  Shortage shortage;
  std::string message;
};

}  // namespace penstock::scheduler
