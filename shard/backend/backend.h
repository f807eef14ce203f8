// A backend runs a model: a Program (shard/model/program.h) over a ragged batch and a paged KV
// cache. The interface is free of libtorch, and so are the executor and backends with own kernels.
//
// The calls come in this order: creation with the weights, Prepare (scratch for the largest step),
// [SetCells, SetSnapshots,] AllocateCache, then any number of {Execute, Logits…}. The warm-up
// allocates a small cache for measuring. Commit calls AllocateCache again with the agreed number of
// blocks.
//
// InvalidArgument names the field of a batch that breaks a rule below; then nothing was computed.
// Internal and Unavailable come from the library or the communicator; then the group is lost.
// Nothing throws.
//
// Threading: one thread, the model thread, makes all calls. With world > 1 Execute and Logits are
// collective: every rank makes the same calls with the same batch.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"
#include "shard/adapters/lora_adapter.h"
#include "shard/cache/padded/cell_layout.h"
#include "shard/cache/padded/pool_split.h"
#include "shard/cache/paged/kv_blocks.h"
#include "shard/tensor_view.h"

namespace penstock::shard {

// An adapter as one backend computes it (Backend::MakeAdapter). Immutable.
class BackendAdapter {
 public:
  virtual ~BackendAdapter() = default;
  virtual std::uint64_t MemoryBytes() const = 0;
};

// Consecutive rows of a batch that belong to one sequence. Row i of the segment is the token at
// position context_length + i. It sees itself and the cached positions before it, within the
// layer's window. In an encoder it sees all rows of the segment (AttentionOp::both_ways), which is
// then a whole text: context_length is 0.
struct RaggedSegment {
  std::uint32_t query_start = 0;     // first row in RaggedBatch::tokens
  std::uint32_t query_count = 0;     // >= 1
  std::uint32_t context_length = 0;  // positions whose K/V are in the cache already
  // Block table of the sequence in KV group 0: entry p / block_size holds position p. It covers
  // context and queries.
  std::span<const BlockId> blocks;
  // Contrastive search: the rows are candidates for one position, context_length. Each sees the
  // context, whose K/V they share, and itself. They write neither K/V nor the hidden-state plane
  // until CommitCandidates names one of them. The segment has one logit row, its first. Its logits
  // will be those of the named row.
  bool candidates = false;
  // Padded KV layout: the sequence's K/V are the row of this slot; `blocks` is not read.
  std::optional<SlotId> row;
  // For models with recurrent layers: the slot of the sequence's state, below max_sequences. The
  // state begins as zeros if context_length is 0. Otherwise it is the state after the sequence's
  // last segment, or a restored one. Every position before these rows was computed.
  SlotId state;
  // The block table in KV group 1; empty: that of group 0 serves both. Entries that lie wholly
  // before the window of the first row are not read: they may hold anything.
  std::span<const BlockId> window_blocks = {};

  std::span<const BlockId> Table(std::uint32_t kv_group) const {
    return kv_group == 0 || window_blocks.empty() ? blocks : window_blocks;
  }
  // Read by RoPE whose frequencies depend on the length of the text (row_angles.h): the tokens with
  // which the sequence began, and those of the request's own prompt. In contrastive search the
  // first counts the first candidate too.
  std::uint32_t text_length = 0;
  std::uint32_t prompt_length = 0;
  // How many of the last rows are drafts. KeepDrafts says how many of them stay in the state.
  std::uint32_t drafts = 0;
  // Rows from this one on are the second part of a pair of texts (PositionsOp::parts).
  std::uint32_t first_part = std::numeric_limits<std::uint32_t>::max();
  // An adapter of the same backend; outlives Logits of the batch. Null: the model alone.
  const BackendAdapter* adapter = nullptr;
};

struct RaggedBatch {
  std::span<const TokenId> tokens;            // [rows], each below the vocabulary
  std::span<const RaggedSegment> segments;    // cover the rows without gaps, in order
  std::span<const std::uint32_t> logit_rows;  // rows whose logits are wanted, ascending
};

class Communicator;

struct BlockCopy {
  BlockId src;
  BlockId dst;
  std::uint32_t kv_group = 0;
};

struct CandidateChoice {
  std::uint32_t segment = 0;  // index into RaggedBatch::segments, a candidate segment
  std::uint32_t row = 0;      // of the segment
};

// Between the state of a slot and a snapshot.
struct StateCopy {
  SlotId slot;
  BlockId snapshot;
};

struct DraftsKept {
  std::uint32_t segment = 0;  // index into RaggedBatch::segments, a segment with drafts
  std::uint32_t rows = 0;     // the first of them; the others were wrong
};

// Limits agreed at Configure.
struct BackendLimits {
  std::uint32_t max_step_tokens = 512;       // rows of a batch
  std::uint32_t max_sequence_length = 1024;  // positions
  std::uint32_t max_logit_rows = 64;         // rows of one Logits call
  // Rows of all candidate segments of a batch. If above 0, the cache has a hidden-state plane: for
  // each position the hidden state after the final norm, as a unit vector. The plane lies in the
  // same blocks as K and V and is written for every row. 0: no contrastive search, no plane.
  std::uint32_t max_candidate_rows = 0;
  std::uint32_t max_sequences = 64;  // whose states the backend keeps
  // Draft rows of all segments of a batch. With recurrent layers each has a state of its own.
  std::uint32_t max_draft_rows = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // For example "reference", "cpu/avx512-bf16", "cpu/avx512/int8" (the weights are quantised).
  virtual std::string Name() const = 0;

  // Allocates everything but the cache. `communicator` connects the ranks on the backend's device.
  // It outlives the last collective call and may be null with world 1. A second call, after the
  // group was formed again, replaces both.
  virtual absl::Status Prepare(const BackendLimits& limits, Communicator* communicator) = 0;

  // Whether a step that is larger than all before it takes memory, or uses some for the first time.
  // If not, Prepare and the calls that allocate have taken all that any step needs.
  virtual bool TakesMemoryInSteps() const { return true; }

  // Whether segments may have adapters.
  virtual bool HasAdapters() const { return false; }
  // From any thread, also during other calls.
  virtual absl::StatusOr<std::unique_ptr<BackendAdapter>> MakeAdapter(const LoraAdapter&) const {
    return absl::UnimplementedError("backend " + Name() + " has no adapters");
  }

  // Allocates zeroed K/V storage with these blocks, and the states of recurrent layers unless there
  // are no blocks. Replaces an earlier one.
  virtual absl::Status AllocateCache(const KvBlocks& blocks) = 0;

  // The same for a cache to serve from, whose blocks are used from the first one on. A backend may
  // leave later blocks without pre-faulting if enough memory is free.
  virtual absl::Status AllocateServingCache(const KvBlocks& blocks) {
    return AllocateCache(blocks);
  }

  // Padded KV layout: caches that are allocated from now on also have room for `cells` positions in
  // at most `rows` padded KV rows. 0: none. The program then has one KV group.
  virtual absl::Status SetCells(std::uint32_t cells, std::uint32_t) {
    if (cells == 0) return absl::OkStatus();
    return absl::UnimplementedError("backend " + Name() + " has no padded KV layout");
  }
  virtual RowStore row_store() const { return RowStore::kDense; }

  // Arranges the padded KV rows in these parts. Rows that are new are copied from their blocks, and
  // rows that no part names are dropped. The parts together respect the limits of SetCells.
  virtual absl::StatusOr<CellsArranged> ArrangeCells(std::span<const CellPart>) {
    return absl::UnimplementedError("backend " + Name() + " has no padded KV layout");
  }

  // Caches that are allocated from now on also have room for that many snapshots of states.
  virtual absl::Status SetSnapshots(std::uint32_t snapshots) {
    if (snapshots == 0) return absl::OkStatus();
    return absl::UnimplementedError("backend " + Name() + " has no recurrent states");
  }
  // Copy the state of each slot, as it is after the calls so far, to its snapshot, and back.
  virtual absl::Status SaveStates(std::span<const StateCopy> copies) {
    return SetSnapshots(static_cast<std::uint32_t>(copies.size()));
  }
  virtual absl::Status RestoreStates(std::span<const StateCopy> copies) {
    return SetSnapshots(static_cast<std::uint32_t>(copies.size()));
  }

  // The sequences of these slots have ended: what a backend keeps of them is not needed.
  virtual absl::Status EndSequences(std::span<const SlotId>) { return absl::OkStatus(); }

  // Copies K and V of all layers of a KV group, one block after the other.
  virtual absl::Status CopyBlocks(std::span<const BlockCopy> copies) = 0;

  // Computes a step. Writes K/V of every row to the cache, except those of candidates. After it
  // come Similarities and CommitCandidates if there are candidate segments, then Logits for
  // batch.logit_rows, then KeepDrafts if there are drafts.
  virtual absl::Status Execute(const RaggedBatch& batch) = 0;

  // Sets `out`, which has query_count entries: for each row of a candidate segment of the last
  // batch the largest cosine of its hidden state with that of any position of the context. Not
  // collective.
  virtual absl::Status Similarities(std::uint32_t segment, std::span<float> out) = 0;

  // Writes K/V and hidden state of the named candidates to their position. After that the segment's
  // logit row is that row. There is one choice for each candidate segment of the last batch, in
  // ascending order. Every rank makes the same call.
  virtual absl::Status CommitCandidates(std::span<const CandidateChoice> choices) = 0;

  // For models with recurrent layers: the sequences of the last batch continue after these drafts.
  // A segment with drafts that is not named keeps none. K and V need nothing: the rows of wrong
  // drafts are written again. Every rank makes the same call.
  virtual absl::Status KeepDrafts(std::span<const DraftsKept>) { return absl::OkStatus(); }

  // float32 [count, Program::OutputWidth()] in host memory for logit_rows[first, first + count),
  // with the shares of all ranks. count <= max_logit_rows. Valid until the next call of any kind.
  // The caller may change the values. With world > 1 every rank must ask for the same rows.
  virtual absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) = 0;

  // Between other calls the host may use the backend's own threads, of which the caller is one.
  // ForEach calls work(item, thread) once for each item, thread < OwnThreads(), and returns when
  // all are done.
  virtual std::uint32_t OwnThreads() const { return 1; }
  using Work = std::function<void(std::uint32_t item, std::uint32_t thread)>;
  virtual void ForEach(std::uint32_t items, const Work& work) {
    for (std::uint32_t item = 0; item < items; ++item) work(item, 0);
  }

  // Bytes that are allocated now: weights, scratch, cache. Before Prepare: weights.
  virtual std::uint64_t MemoryBytes() const = 0;
};

}  // namespace penstock::shard
