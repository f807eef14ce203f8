// The states of recurrent layers (StateShape), by slot of a sequence. The memory of a slot is one
// piece: for each layer the inputs of the convolution, [inputs][channels], then for each head its
// matrix in blocks of kDeltaColumns columns, each [key_dim][kDeltaColumns].
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/model/program.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

class StateStore {
 public:
  // Zeroed; frees the former contents first. About `prefaulted` bytes are pre-faulted, those of the
  // first slots. ResourceExhausted.
  absl::Status Allocate(const std::vector<StateShape>& shapes, std::uint32_t slots,
                        WorkerPool& pool, std::size_t prefaulted);

  float* Inputs(std::size_t state, std::size_t slot) const {
    return Floats() + slot * slot_floats_ + layers_[state].inputs;
  }
  // A block of columns of a head's matrix.
  float* Block(std::size_t state, std::size_t slot, std::size_t head, std::size_t block) const {
    const Layer& layer = layers_[state];
    return Floats() + slot * slot_floats_ + layer.matrices +
           (head * layer.blocks + block) * layer.block_floats;
  }
  std::uint64_t MemoryBytes() const { return region_.bytes(); }

  // Blocks of columns of a matrix.
  static std::size_t BlocksOf(const StateShape& shape);

 private:
  // Where a layer lies in a slot, in floats.
  struct Layer {
    std::size_t inputs = 0;
    std::size_t matrices = 0;
    std::size_t blocks = 0;  // of a head
    std::size_t block_floats = 0;
  };

  float* Floats() const { return reinterpret_cast<float*>(region_.data()); }

  std::vector<Layer> layers_;
  std::size_t slot_floats_ = 0;
  MemoryRegion region_;
};

}  // namespace penstock::shard::cpu
