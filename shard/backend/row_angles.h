// Angles of RoPE whose frequencies depend on the length of the text. They differ by row, so they
// are computed for the rows of each batch. Other RoPE has a table of all positions (rope_table.h).
//
// A row at position p belongs to a text of at least p + 1 tokens:
//
//   longrope  the text with which the sequence began, if that is longer. All rows of a sequence
//             must be on one side of the original length: K and V of the two sides do not mix. A
//             text that passes it is computed again as a new sequence.
//   dynamic   the request's own prompt, if that is longer. So chunks of a prompt are like the whole
//             prompt, each later token has frequencies of its own, and K and V of a preempted
//             sequence become the same again.
#pragma once

#include "shard/backend/backend.h"
#include "shard/model/rope_table.h"

namespace penstock::shard {

// Sets the first rows of `out`, which has [rows of the largest batch, dim / 2] elements.
void SetRowAngles(const RopeSpec& rope, const RaggedBatch& batch, RopeTable& out);

}  // namespace penstock::shard
