// Divides the K/V caches of a Program into KV groups (shard/cache/paged/kv_blocks.h).
//
// A cache belongs to group 1 if every layer that reads it has a window. The window of the group is
// the widest of its layers: a layer with a narrower one keeps more positions than it reads. If all
// layers have a window, group 0 has no cache; its block tables only number the text.
#pragma once

#include <cstdint>

#include "shard/model/program.h"

namespace penstock::shard {

// Sets kv_group of each cache and kv_window. A window of `max_position` or more hides nothing and
// counts as none.
void AssignKvGroups(Program& program, std::uint32_t max_position);

// Moves all caches to group 0.
void JoinKvGroups(Program& program);

}  // namespace penstock::shard
