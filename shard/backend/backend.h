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
#include <span>
#include <string>

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
};

struct RaggedBatch {
  std::span<const TokenId> tokens;            // [rows], each below the vocabulary
  std::span<const RaggedSegment> segments;    // cover the rows gaplessly, in order
  std::span<const std::uint32_t> logit_rows;  // rows whose logits are wanted, ascending
};

class Communicator;

struct BlockCopy {
  BlockId src;
  BlockId dst;
};

// Limits agreed at Configure.
struct BackendLimits {
  std::uint32_t max_step_tokens = 512;       // rows of a batch
  std::uint32_t max_sequence_length = 1024;  // positions
  std::uint32_t max_logit_rows = 64;         // rows of one Logits call
};

class Backend {
 public:
  virtual ~Backend() = default;

  // What runs, for people: "reference", "cpu/avx512-bf16".
  virtual std::string Name() const = 0;

  // Allocates everything but the cache. `communicator` joins the ranks and serves the backend's
  // device; it outlives the last collective call and may be null with world 1. Called again for a
  // group that forms anew, it replaces both.
  virtual absl::Status Prepare(const BackendLimits& limits, Communicator* communicator) = 0;

  // K/V storage of `blocks` blocks in every layer, zeroed; replaces a former one.
  virtual absl::Status AllocateCache(std::uint32_t blocks) = 0;

  // K and V of all layers, in order.
  virtual absl::Status CopyBlocks(std::span<const BlockCopy> copies) = 0;

  // Writes K/V of every row to the cache. Afterwards Logits may be called for batch.logit_rows.
  virtual absl::Status Execute(const RaggedBatch& batch) = 0;

  // float32 [count, vocabulary] in host memory for logit_rows[first, first + count), all ranks'
  // shares gathered. count <= max_logit_rows. Valid until the next call of any kind; the caller may
  // change the values. With world > 1 every rank must ask for the same rows.
  virtual absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) = 0;

  // What is allocated now: weights, scratch, cache.
  virtual std::uint64_t MemoryBytes() const = 0;
};

}  // namespace penstock::shard
