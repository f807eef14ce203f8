// A step plan: what every rank of a group must do in one step. proto/plan_conversion.h converts it
// to its wire form, penstock.v1.StepPlan.
//
// Lengths of a sequence:
//   - prompt_length: tokens of the prompt.
//   - cached_length: leading prompt tokens whose K and V are already in the given blocks.
//   - committed length: positions that have K and V and whose token is final. After a whole prompt
//   of
//     P tokens it is P. The first sampled token is known then, but the next decode commits it.
//
// KV groups: a slot has one block table for each KV group (GroupCapacity), and entry i of each
// table holds positions [i * block_size, (i + 1) * block_size). Block ids of a group begin at 0.
// Group 0 keeps every position. Group 1, if there is one, has a window: a row at position p reads
// positions [p - window + 1, p] of it. Its blocks are given to other sequences without a word to
// the shard once the next plan of their sequence, and all later ones, begin after their window. So
// a row must not read before its window, and an entry before the window may be kNoBlock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "common/plan/sampling.h"

namespace penstock {

// An entry of a window group's block table without a block. All of its positions lie before the
// window of every row that the sequence computes.
inline constexpr BlockId kNoBlock{UINT32_MAX};

// A change to KV blocks, to the block table of a slot or to its recurrent state. Fields that a kind
// does not use are zero.
//
// Snapshots are copies of the state of a recurrent model, numbered from 0 (GroupCapacity). All
// kRestoreState of a plan come before its segments, and all kSaveState after them.
struct BlockOp {
  enum class Kind : std::uint8_t {
    kAppend,  // block `dst`, or kNoBlock, becomes the next entry of the slot's table for kv_group
    kCopy,    // the device copies block src to dst, both of kv_group (copy on write)
    kSaveState,     // snapshot `dst` becomes the state of the slot after its prompt segment
    kRestoreState,  // the slot, which this plan starts, continues from snapshot `src`
  };
  Kind kind = Kind::kAppend;
  std::uint32_t kv_group = 0;
  SlotId slot;
  BlockId src;
  BlockId dst;
  friend bool operator==(const BlockOp&, const BlockOp&) = default;
};

// Whether the operation concerns the state of a slot, not its blocks.
constexpr bool IsOfState(BlockOp::Kind kind) {
  return kind == BlockOp::Kind::kSaveState || kind == BlockOp::Kind::kRestoreState;
}

// Starts a sequence on a slot that was never used, or that this plan or an earlier one ended.
struct SequenceStart {
  SlotId slot;
  SequenceId sequence;
  std::vector<TokenId> prompt;
  std::uint32_t prompt_length = 0;  // == prompt.size()
  std::uint32_t cached_length = 0;  // < prompt_length; of a recurrent model that of its snapshot
  // Index of the first sampled token in the output of the request. Above 0 after a preemption.
  std::uint32_t sample_index_base = 0;
  SamplingParams sampling;
  LogprobRequest logprobs;
  std::vector<TokenId> stop_token_ids;  // end the sequence as kStopToken
  bool ignore_eos = false;
  std::uint32_t min_new_tokens = 0;  // eos and stop tokens are masked until then
  std::uint32_t max_new_tokens = 0;  // 0 = no bound of the shard's own
  GrammarSpec grammar;               // what the generated tokens must match
  std::string adapter_id;            // of a loaded adapter; empty: the model alone
  std::string trace_id;
  friend bool operator==(const SequenceStart&, const SequenceStart&) = default;
};

// The most decode rows of a step whose decodes have drafts, drafts included. Up to about this many
// rows, reading the weights bounds a step, so a further row is nearly free (docs/decisions/0025).
inline constexpr std::uint32_t kVerifiedRows = 16;

struct Segment {
  enum class Kind : std::uint8_t { kPrompt, kDecode };
  enum class Logits : std::uint8_t { kNone, kLast, kAll };
  Kind kind = Kind::kDecode;
  SlotId slot;
  // kPrompt: positions [first, first + count) of the prompt. The chunk that ends the prompt has
  // kLast or kAll and samples the first token. In contrastive search it finds the first candidates
  // instead. Earlier chunks do not sample. They have kNone, or kAll for prompt logprobs.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Logits logits = Logits::kNone;
  // kDecode: the maximum number of rows, from the committed length on. A sequence that finished on
  // the shard computes and reports nothing. In contrastive search there are exactly Candidates()
  // rows, all at the committed length. They yield one committed token: its K and V are written.
  std::uint32_t max_rows = 1;

  std::uint32_t Rows() const { return kind == Kind::kPrompt ? count : max_rows; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

// A sub-batch: segments whose attention is computed together. A plan without groups has one
// sub-batch of all segments.
//
// Padded KV layout: a group with `rows` is a dense tensor of rows.size() * width positions. The
// shard keeps exactly the rows that the plan lists. A slot that is listed for the first time joins:
// the shard copies its committed positions from its blocks and empties its block table. A slot that
// is no longer listed loses its row. A decode of a row must be a segment of the same group and fit
// the width.
struct SegmentGroup {
  std::vector<std::uint32_t> segments;  // indexes into StepPlan::segments
  std::vector<SlotId> rows;             // empty: the segments read block tables
  std::uint32_t width = 0;              // positions of each row
  friend bool operator==(const SegmentGroup&, const SegmentGroup&) = default;
};

// The router lists a slot in `ends` once, when the results of all plans that name it have arrived.
// The same plan may start a new sequence on the slot.
//
// A plan may have no segments: when the last sequences of a group end, a plan with only `ends`
// frees their slots. Its result has no sequences.
struct StepPlan {
  Epoch epoch;
  StepId step;
  std::vector<SlotId> ends;  // slots freed before anything else in this plan
  std::vector<BlockOp> block_ops;
  std::vector<SequenceStart> starts;
  std::vector<Segment> segments;
  std::vector<SegmentGroup> groups;

  // Empties every list and keeps its memory.
  void Clear() {
    ends.clear();
    block_ops.clear();
    starts.clear();
    segments.clear();
    groups.clear();
  }

  // A shard applies ends, starts, block_ops and segments, in this order, then kSaveState.
  friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

}  // namespace penstock
