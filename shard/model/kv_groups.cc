#include "shard/model/kv_groups.h"

#include <algorithm>
#include <limits>
#include <variant>
#include <vector>

namespace penstock::shard {
namespace {

constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();

// For each cache the widest window of the layers that read it, or kAll.
std::vector<std::uint32_t> WindowsOfCaches(const Program& program, std::uint32_t max_position) {
  std::vector<std::uint32_t> windows(program.caches.size(), 0);
  for (const Op& op : program.body) {
    const auto* attention = std::get_if<AttentionOp>(&op);
    if (attention == nullptr) continue;
    const bool all = attention->window == 0 || attention->window >= max_position;
    std::uint32_t& widest = windows[attention->cache];
    widest = std::max(widest, all ? kAll : attention->window);
  }
  return windows;
}

}  // namespace

void AssignKvGroups(Program& program, std::uint32_t max_position) {
  const std::vector<std::uint32_t> windows = WindowsOfCaches(program, max_position);
  program.kv_window = 0;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    program.caches[i].kv_group = windows[i] == kAll ? 0 : 1;
    if (windows[i] != kAll) program.kv_window = std::max(program.kv_window, windows[i]);
  }
}

void JoinKvGroups(Program& program) {
  for (CacheShape& cache : program.caches) cache.kv_group = 0;
  program.kv_window = 0;
}

}  // namespace penstock::shard
