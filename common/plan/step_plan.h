// One engine step as the router decides it: what every rank of a group must do, in order of
// application. The wire form is penstock.v1.StepPlan; proto/plan_conversion.h is the one
// conversion.
//
// Length vocabulary, the same everywhere:
//   prompt_length     tokens of the prompt
//   cached_length     leading prompt tokens whose K/V are already in the given blocks
//   committed length  positions whose K/V have been computed and whose token is final. After a
//   whole
//                     prompt of P tokens it is P; the first sampled token is known but not
//                     committed (its K/V are written by the next decode).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "common/plan/sampling.h"

namespace penstock {

// A change to KV blocks or to the block table of a slot. Fields that a kind does not use are zero.
struct BlockOp {
  enum class Kind : std::uint8_t {
    kAppend,  // block `dst` becomes the next entry of the slot's table for kv_group
    kCopy,    // the device copies block src to dst (copy on write)
  };
  Kind kind = Kind::kAppend;
  std::uint32_t kv_group = 0;
  SlotId slot;
  BlockId src;
  BlockId dst;
  friend bool operator==(const BlockOp&, const BlockOp&) = default;
};

// Sequence enters the shard. The slot must be free (never used, or ended in an earlier plan).
struct SequenceStart {
  SlotId slot;
  SequenceId sequence;
  std::vector<TokenId> prompt;
  std::uint32_t prompt_length = 0;  // == prompt.size()
  std::uint32_t cached_length = 0;  // < prompt_length
  std::uint32_t sample_index_base =
      0;  // position of the first sampled token in the *request's* output
  SamplingParams sampling;
  LogprobRequest logprobs;
  std::vector<TokenId> stop_token_ids;  // end the sequence as kStopToken
  bool ignore_eos = false;
  std::uint32_t min_new_tokens = 0;  // eos and stop tokens are masked until then
  std::uint32_t max_new_tokens = 0;  // 0 = no bound of the shard's own
  GrammarSpec grammar;               // what the generated tokens must match
  std::string adapter_id;            // empty: the base model; no shard offers adapters yet
  std::string trace_id;
  friend bool operator==(const SequenceStart&, const SequenceStart&) = default;
};

struct Segment {
  enum class Kind : std::uint8_t { kPrompt, kDecode };
  enum class Logits : std::uint8_t { kNone, kLast, kAll };
  Kind kind = Kind::kDecode;
  SlotId slot;
  // kPrompt: positions [first, first + count) of the prompt. A chunk that reaches the prompt's end
  // carries kLast or kAll and samples the first token (contrastive search: it finds the first
  // candidates and yields no token); an earlier one never samples, and carries kNone or (prompt
  // logprobs wanted) kAll.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Logits logits = Logits::kNone;
  // kDecode: starts at the shard's committed length; bounds rows and K/V writes. A slot that has
  // already finished on the shard computes nothing and reports nothing. Contrastive search: exactly
  // SamplingParams::Candidates() rows, all for the one position at the committed length; one token
  // comes of them and its K/V are written, so the newest token is always committed.
  std::uint32_t max_rows = 1;

  std::uint32_t Rows() const { return kind == Kind::kPrompt ? count : max_rows; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

// Attention sub-batch: indexes into StepPlan::segments. No groups = one group of everything.
//
// Padded KV layout: a group with `rows` is one dense tensor of rows.size() * width cells. After the
// plan's control part the row store holds exactly the plan's groups: a slot that stands there for
// the first time joins (its committed positions are copied from its blocks, and its block table is
// empty from then on), one that no longer does has left. Its decodes must be segments of the group
// and fit the width; rows that compute nothing in this step keep their cells.
struct SegmentGroup {
  std::vector<std::uint32_t> segments;
  std::vector<SlotId> rows;  // empty: the segments read block tables
  std::uint32_t width = 0;   // positions of each row
  friend bool operator==(const SegmentGroup&, const SegmentGroup&) = default;
};

// A plan without segments is legal: when the last sequences have ended and nothing else is to be
// computed, one plan with only `ends` tells the shards that the slots are free. It gets a result
// like any other (no sequences). After it the group is idle: no plan, no message.
//
// A slot stands in `ends` once, after every plan that names it has its result; the same plan may
// start a new sequence on it.
struct StepPlan {
  Epoch epoch;
  StepId step;
  std::vector<SlotId> ends;  // slots freed before anything else in this plan
  std::vector<BlockOp> block_ops;
  std::vector<SequenceStart> starts;
  std::vector<Segment> segments;
  std::vector<SegmentGroup> groups;

  // Empties every list and keeps its room.
  void Clear() {
    ends.clear();
    block_ops.clear();
    starts.clear();
    segments.clear();
    groups.clear();
  }

  // A shard applies ends, starts, block_ops and segments, in this order.
  friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

}  // namespace penstock
