// What runs a model: a Program (shard/model/program.h) over a ragged batch and a paged K/V cache.
// Free of libtorch, so that the executor, its tests and backends with own kernels need none.
//
// Life: created with the weights -> Prepare (scratch for the largest step) -> AllocateCache ->
// any number of {Execute, Logits…}. Warmup allocates a small cache for measuring; Commit calls
// AllocateCache again with the agreed number of blocks.
//
// Errors are statuses: InvalidArgument names the field of a batch that breaks a rule below (then
// nothing was computed), Internal and Unavailable come from the library or the communicator (then
// the group is lost). Nothing throws.
//
// Threading: one thread, the model thread, makes all calls. With world > 1 Execute and Logits are
// collective: every rank makes the same calls with the same batch.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"
#include "shard/tensor_view.h"

namespace penstock::shard {

// Consecutive rows of a batch that belong to one sequence. Row i of the segment is the token at
// position context_length + i; it sees the cached positions before it and itself, within the
// layer's window.
struct RaggedSegment {
  std::uint32_t query_start = 0;     // first row in RaggedBatch::tokens
  std::uint32_t query_count = 0;     // >= 1
  std::uint32_t context_length = 0;  // positions whose K/V are in the cache already
  // Block table of the sequence: entry p / block_size holds position p. Covers context and queries.
  // Entries that lie wholly before the window of every layer are not read.
  std::span<const BlockId> blocks;
  // Contrastive search: the rows are alternatives for ONE position, context_length. Each sees the
  // context and itself; all share the context's K/V (nothing of it is copied). They write neither
  // K/V nor the hidden-state plane until CommitCandidates has named one of them. The segment has
  // one logit row, its first, which stands for the row that will be named.
  bool candidates = false;
  // Padded KV layout: the sequence's K/V are the row of this slot; `blocks` is not looked at.
  std::optional<SlotId> row;
};

struct RaggedBatch {
  std::span<const TokenId> tokens;            // [rows], each below the vocabulary
  std::span<const RaggedSegment> segments;    // cover the rows gaplessly, in order
  std::span<const std::uint32_t> logit_rows;  // rows whose logits are wanted, ascending
};

class Communicator;

// Padded KV layout: one dense right-padded sub-batch.
struct CellRow {
  SlotId slot;
  std::uint32_t length = 0;  // positions whose K/V are there already, <= width
  // Of a row that was in no part before: where they are now.
  std::span<const BlockId> blocks;
};
struct CellPart {
  std::vector<CellRow> rows;
  std::uint32_t width = 0;  // positions of each row
};
// In cells.
struct CellsArranged {
  std::uint64_t allocated = 0;  // of all parts
  std::uint64_t copied = 0;
};

struct BlockCopy {
  BlockId src;
  BlockId dst;
};

struct CandidateChoice {
  std::uint32_t segment = 0;  // index into RaggedBatch::segments, a candidate segment
  std::uint32_t row = 0;      // of the segment
};

// Limits agreed at Configure.
struct BackendLimits {
  std::uint32_t max_step_tokens = 512;       // rows of a batch
  std::uint32_t max_sequence_length = 1024;  // positions
  std::uint32_t max_logit_rows = 64;         // rows of one Logits call
  // Rows of all candidate segments of a batch. Above 0 the cache has a hidden-state plane: one
  // normalised vector (last hidden state, behind the final norm) per position, kept beside K and V
  // in the same blocks, written for every row. 0: no contrastive search, no plane.
  std::uint32_t max_candidate_rows = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // What runs: "reference", "cpu/avx512-bf16", "cpu/avx512/int8" (the weights are quantised).
  virtual std::string Name() const = 0;

  // Allocates everything but the cache. `communicator` joins the ranks and serves the backend's
  // device; it outlives the last collective call and may be null with world 1. Called again for a
  // group that forms anew, it replaces both.
  virtual absl::Status Prepare(const BackendLimits& limits, Communicator* communicator) = 0;

  // Whether a step that is larger than those before it takes memory, or touches some for the first
  // time. If not, Prepare and the calls that allocate have taken all that any step needs.
  virtual bool TakesMemoryInSteps() const { return true; }

  // K/V storage of `blocks` blocks in every layer, zeroed; replaces a former one.
  virtual absl::Status AllocateCache(std::uint32_t blocks) = 0;

  // The same for blocks that are used from the first one on. A backend may put off what makes its
  // later blocks quick, as long as their memory cannot be lacking.
  virtual absl::Status AllocateServingCache(std::uint32_t blocks) { return AllocateCache(blocks); }

  // Room for `cells` positions of rows beside the blocks of the last AllocateCache, and the scratch
  // that moving them takes. Never called: the paged layout only.
  virtual absl::Status AllocateCells(std::uint32_t cells) {
    if (cells == 0) return absl::OkStatus();
    return absl::UnimplementedError("backend " + Name() + " has no padded KV layout");
  }

  // Makes these the parts of the row store, in order: rows that were there go along, rows that were
  // not are copied from their blocks, and those that no part names are gone. Their cells together
  // are at most those of AllocateCells.
  virtual absl::StatusOr<CellsArranged> ArrangeCells(std::span<const CellPart>) {
    return absl::UnimplementedError("backend " + Name() + " has no padded KV layout");
  }

  // K and V of all layers, in order.
  virtual absl::Status CopyBlocks(std::span<const BlockCopy> copies) = 0;

  // Writes K/V of every row to the cache, except those of candidates. Afterwards, in this order:
  // Similarities and CommitCandidates where there are candidate segments, then Logits for
  // batch.logit_rows.
  virtual absl::Status Execute(const RaggedBatch& batch) = 0;

  // For each row of a candidate segment of the last batch the largest cosine of its hidden state
  // with that of any position of the context. `out` has query_count entries. Not collective.
  virtual absl::Status Similarities(std::uint32_t segment, std::span<float> out) = 0;

  // Writes K/V and hidden state of the named candidates to their position; from now on the
  // segment's logit row is that row. One choice for each candidate segment of the last batch, in
  // ascending order. Every rank makes the same call.
  virtual absl::Status CommitCandidates(std::span<const CandidateChoice> choices) = 0;

  // float32 [count, vocabulary] in host memory for logit_rows[first, first + count), all ranks'
  // shares gathered. count <= max_logit_rows. Valid until the next call of any kind; the caller may
  // change the values. With world > 1 every rank must ask for the same rows.
  virtual absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) = 0;

  // Between the calls the host may use the backend's own threads, the caller among them: ForEach
  // calls work(item, thread) once for each item, thread < OwnThreads(), and returns when all are
  // done.
  virtual std::uint32_t OwnThreads() const { return 1; }
  using Work = std::function<void(std::uint32_t item, std::uint32_t thread)>;
  virtual void ForEach(std::uint32_t items, const Work& work) {
    for (std::uint32_t item = 0; item < items; ++item) work(item, 0);
  }

  // What is allocated now: weights, scratch, cache. Before Prepare: weights.
  virtual std::uint64_t MemoryBytes() const = 0;
};

}  // namespace penstock::shard
