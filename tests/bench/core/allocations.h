// Counts calls of the global operator new in this program.
#pragma once

#include <cstdint>

namespace penstock::bench {

std::uint64_t Allocations();

}  // namespace penstock::bench
