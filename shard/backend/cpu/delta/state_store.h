// The states of recurrent layers (StateShape): one for each slot of a sequence, one for each draft
// row of a step, and snapshots. The memory of a state is one piece: for each layer the inputs of
// the convolution, [inputs][channels], then for each head its matrix in blocks of kDeltaColumns
// columns, each [key_dim][kDeltaColumns].
//
// A step advances the state of a slot in place, up to its first draft. After each draft it leaves a
// state of its own. Keep exchanges the state of the slot for that after the last right draft.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/model/program.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

// A segment of a step and the places of its states.
struct StateSegment {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;  // before the drafts
  std::uint32_t drafts = 0;
  bool begins = false;  // the text; its state is zeros
  SlotId slot;
  std::uint32_t place = 0;        // of the slot's state
  std::uint32_t first_draft = 0;  // index among the drafts of the step
};

struct StateCounts {
  std::uint32_t slots = 0;
  std::uint32_t drafts = 0;
  std::uint32_t snapshots = 0;
  std::size_t All() const { return std::size_t{slots} + drafts + snapshots; }
};

class StateStore {
 public:
  // Zeroed; frees the former contents first. About `prefaulted` bytes are pre-faulted, those of the
  // first slots. ResourceExhausted.
  absl::Status Allocate(const std::vector<StateShape>& shapes, const StateCounts& counts,
                        WorkerPool& pool, std::size_t prefaulted);

  // The segments of the next step. The batch has been checked.
  void BeginStep(std::span<const RaggedSegment> segments);
  const std::vector<StateSegment>& segments() const { return segments_; }
  // The place of the state after a draft. `draft` is an index among the drafts of the step.
  std::uint32_t DraftPlace(std::uint32_t draft) const { return drafts_[draft]; }
  // After the step. The segment has that many drafts.
  void Keep(const DraftsKept& kept);

  std::uint32_t snapshots() const { return counts_.snapshots; }
  void Save(const StateCopy& copy);
  void Restore(const StateCopy& copy);

  float* Inputs(std::size_t state, std::size_t place) const {
    return Floats() + place * place_floats_ + layers_[state].inputs;
  }
  // A block of columns of a head's matrix.
  float* Block(std::size_t state, std::size_t place, std::size_t head, std::size_t block) const {
    const Layer& layer = layers_[state];
    return Floats() + place * place_floats_ + layer.matrices +
           (head * layer.blocks + block) * layer.block_floats;
  }
  std::uint64_t MemoryBytes() const { return region_.bytes(); }

  // Blocks of columns of a matrix.
  static std::size_t BlocksOf(const StateShape& shape);

 private:
  // Where a layer lies in a state, in floats.
  struct Layer {
    std::size_t inputs = 0;
    std::size_t matrices = 0;
    std::size_t blocks = 0;  // of a head
    std::size_t block_floats = 0;
  };

  // The place of a snapshot.
  std::size_t Place(BlockId snapshot) const {
    return std::size_t{counts_.slots} + counts_.drafts + snapshot.value();
  }
  void Copy(std::size_t from, std::size_t to);
  float* Floats() const { return reinterpret_cast<float*>(region_.data()); }

  StateCounts counts_;
  std::vector<Layer> layers_;
  std::size_t place_floats_ = 0;
  std::vector<std::uint32_t> slots_;   // place of each slot's state
  std::vector<std::uint32_t> drafts_;  // places of the states after drafts
  std::vector<StateSegment> segments_;
  MemoryRegion region_;
};

}  // namespace penstock::shard::cpu
