#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t CeilDivide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace

GridShare SplitGrid(std::size_t row_tiles, std::size_t column_units, std::size_t threads,
                    std::size_t thread) {
  std::size_t groups = 1;  // of rows
  std::size_t lightest = 0;
  for (std::size_t candidate = 1; candidate <= threads && candidate <= row_tiles; ++candidate) {
    if (threads % candidate != 0) continue;
    // Reading the weights again costs a fifth.
    const std::size_t load =
        CeilDivide(row_tiles, candidate) * CeilDivide(column_units, threads / candidate);
    const std::size_t weighted = candidate == 1 ? load * 5 : load * 6;
    if (lightest != 0 && weighted >= lightest) continue;
    lightest = weighted;
    groups = candidate;
  }
  const std::size_t per_group = threads / groups;
  return {EvenShare(row_tiles, groups, thread / per_group),
          EvenShare(column_units, per_group, thread % per_group),
          {thread / per_group * per_group, per_group}};
}

}  // namespace penstock::shard::cpu
