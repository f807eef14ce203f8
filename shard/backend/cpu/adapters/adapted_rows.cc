#include "shard/backend/cpu/adapters/adapted_rows.h"

#include <algorithm>

namespace penstock::shard::cpu {
namespace {

// Rows of `down` that a thread multiplies with all rows of the step before the next ones.
constexpr std::size_t kRanksOfItem = 8;

}  // namespace

void AdaptedRows::Fill(const RaggedBatch& batch) {
  active_.clear();
  for (const RaggedSegment& segment : batch.segments) {
    const auto* adapter = static_cast<const CpuAdapter*>(segment.adapter);
    if (adapter == nullptr || std::ranges::find(active_, adapter) != active_.end()) continue;
    active_.push_back(adapter);
  }
  if (active_.empty()) return;
  rows_.assign(batch.tokens.size(), nullptr);
  for (const RaggedSegment& segment : batch.segments) {
    std::fill_n(rows_.begin() + segment.query_start, segment.query_count,
                static_cast<const CpuAdapter*>(segment.adapter));
  }
  selected_.clear();
  for (const std::uint32_t row : batch.logit_rows) selected_.push_back(rows_[row]);
}

bool AdaptedRows::Change(WeightIndex matrix) const {
  return std::ranges::any_of(
      active_, [matrix](const CpuAdapter* adapter) { return adapter->Find(matrix) != nullptr; });
}

// Items are parts of `down`, then rows: rows with the same adapter read a part one after the other.
void AdapterProduct::Down(const GemmArgs& whole, std::size_t element, std::size_t threads,
                          std::size_t thread) const {
  std::size_t most = 0;
  for (const CpuAdapter* adapter : adapters) {
    const CpuAdapter::Delta* delta = adapter == nullptr ? nullptr : adapter->Find(matrix);
    if (delta != nullptr) most = std::max(most, delta->ranks);
  }
  const std::size_t parts = (most + kRanksOfItem - 1) / kRanksOfItem;
  const Share share = EvenShare(parts * whole.rows, threads, thread);
  for (std::size_t item = share.first; item < share.first + share.count; ++item) {
    const std::size_t row = item % whole.rows;
    const std::size_t first = item / whole.rows * kRanksOfItem;
    if (adapters[row] == nullptr) continue;
    const CpuAdapter::Delta* delta = adapters[row]->Find(matrix);
    if (delta == nullptr || first >= delta->ranks) continue;
    LoraDownArgs args;
    args.input = static_cast<const std::byte*>(whole.input) + row * whole.input_stride * element;
    args.down = delta->down;
    args.stride = delta->stride;
    args.scales = delta->scales.data();
    args.first = first;
    args.end = std::min(delta->ranks, first + kRanksOfItem);
    args.out = low + row * kMostTargetRanks;
    adapters[row]->kernels().down(args);
  }
}

void AdapterProduct::Up(const GemmArgs& args, std::size_t first_row, std::size_t lanes, float* sums,
                        const float** added) const {
  const std::size_t end = args.first_vector + args.vectors;
  for (std::size_t row = 0; row < args.rows; ++row) {
    const CpuAdapter* adapter = adapters[first_row + row];
    const CpuAdapter::Delta* delta = adapter == nullptr ? nullptr : adapter->Find(matrix);
    added[row] = nullptr;
    if (delta == nullptr) continue;
    float* const out = sums + row * kAddedVectors * lanes;
    std::fill_n(out, args.vectors * lanes, 0.0f);
    for (const CpuAdapter::Up& up : delta->ups) {
      const std::size_t past = up.first_vector + up.vectors * up.step;
      // The first of its vectors that is wanted.
      const std::size_t skipped =
          up.first_vector >= args.first_vector
              ? 0
              : (args.first_vector - up.first_vector + up.step - 1) / up.step;
      const std::size_t first = up.first_vector + skipped * up.step;
      if (first >= std::min(end, past)) continue;
      LoraUpArgs product;
      product.low = low + (first_row + row) * kMostTargetRanks + up.first_rank;
      product.ranks = up.ranks;
      product.up = up.data + skipped * up.ranks * lanes * adapter->element();
      product.step = up.step;
      product.vectors = (std::min(end, past) - first + up.step - 1) / up.step;
      product.out = out + (first - args.first_vector) * lanes;
      adapter->kernels().up(product);
    }
    added[row] = out;
  }
}

}  // namespace penstock::shard::cpu
