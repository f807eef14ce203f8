// Pre-faults memory: makes the kernel supply its pages before they are needed. A page fault within
// a step would delay every sequence of the batch. On a virtual machine one may cost
// milliseconds, because the host may have to find the memory first.
//
// Threading: any; other threads may read and write the memory at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace penstock::shard::cpu {

// The unit of work, a huge page. Unit i of a span begins at byte i * kPrefaultUnit; the last unit
// may be shorter.
inline constexpr std::size_t kPrefaultUnit = std::size_t{2} << 20;

constexpr std::size_t PrefaultUnits(std::size_t bytes) {
  return (bytes + kPrefaultUnit - 1) / kPrefaultUnit;
}

// Changes no byte.
inline void PrefaultUnit(std::span<std::byte> memory, std::size_t unit) {
  constexpr std::size_t kPage = 4096;
  const std::size_t end = std::min(memory.size(), (unit + 1) * kPrefaultUnit);
  for (std::size_t at = unit * kPrefaultUnit; at < end; at += kPage) {
    // Another thread may write to this page: a single instruction writes and changes nothing.
    asm volatile("lock orb $0, %0" : "+m"(*reinterpret_cast<char*>(memory.data() + at)));
  }
}

}  // namespace penstock::shard::cpu
