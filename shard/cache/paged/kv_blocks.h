// The KV groups of a cache: layers that share a block table. Group 0 keeps every position. Group 1,
// if there is one, has layers with a window; its blocks are given to other sequences once they lie
// before the window. Each group has blocks of its own, with ids from 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace penstock::shard {

inline constexpr std::uint32_t kMostKvGroups = 2;

// The first position that the query at `position` sees.
constexpr std::uint64_t FirstVisible(std::uint32_t window, std::uint64_t position) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

// A number of blocks for each KV group. Groups that a model does not have are ignored.
struct KvBlocks {
  KvBlocks() = default;
  // As many blocks in every group.
  KvBlocks(std::uint32_t each) { by_group.fill(each); }
  KvBlocks(std::uint32_t first, std::uint32_t second) : by_group{first, second} {}

  std::uint32_t operator[](std::size_t group) const { return by_group[group]; }
  std::uint32_t& operator[](std::size_t group) { return by_group[group]; }
  std::uint32_t Most() const { return *std::max_element(by_group.begin(), by_group.end()); }
  bool empty() const { return Most() == 0; }
  friend bool operator==(const KvBlocks&, const KvBlocks&) = default;

  std::array<std::uint32_t, kMostKvGroups> by_group{};
};

}  // namespace penstock::shard
