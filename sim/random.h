// Random numbers that are the same with every compiler and on every machine (splitmix64).
#pragma once

#include <cstdint>

namespace penstock::sim {

// The finisher of splitmix64: every bit of the result depends on every bit of `x`.
inline std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

inline std::uint64_t Mix(std::uint64_t state, std::uint64_t word) { return Mix(Mix(state) ^ word); }

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(Mix(seed)) {}

  std::uint64_t Next() { return Mix(state_++); }
  // 0 … below - 1; below >= 1.
  std::uint32_t Below(std::uint32_t below) { return static_cast<std::uint32_t>(Next() % below); }
  // low … high, both included.
  std::uint32_t Between(std::uint32_t low, std::uint32_t high) {
    return low + Below(high - low + 1);
  }
  bool OneIn(std::uint32_t n) { return Below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace penstock::sim
