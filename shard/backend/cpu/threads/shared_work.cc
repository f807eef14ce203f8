#include "shard/backend/cpu/threads/shared_work.h"

#include <algorithm>

namespace penstock::shard::cpu {
namespace {

constexpr std::uint64_t Packed(std::size_t first, std::size_t end) {
  return std::uint64_t{first} << 32 | end;
}

}  // namespace

void SharedWork::Begin(std::size_t thread, const Share& share) {
  ranges_[thread].bounds.store(Packed(share.first, share.first + share.count),
                               std::memory_order_release);
}

Share SharedWork::Next(std::size_t thread, const Share& peers, std::size_t grain) {
  Share part = Take(ranges_[thread], grain, true);
  if (part.count == 0) part = TakeFromPeers(thread, peers, grain, true);
  if (part.count > 0 || placement_.NodeCount() == 1) return part;
  return TakeFromPeers(thread, peers, grain, false);
}

Share SharedWork::TakeFromPeers(std::size_t thread, const Share& peers, std::size_t grain,
                                bool near) {
  Share part;
  for (std::size_t i = 1; i < peers.count && part.count == 0; ++i) {
    const std::size_t peer = peers.first + (thread - peers.first + i) % peers.count;
    if ((placement_.NodeOf(peer) == placement_.NodeOf(thread)) != near) continue;
    part = Take(ranges_[peer], grain, false);
  }
  return part;
}

Share SharedWork::Take(Range& range, std::size_t grain, bool front) {
  std::uint64_t bounds = range.bounds.load(std::memory_order_acquire);
  for (;;) {
    const std::size_t first = bounds >> 32;
    const std::size_t end = bounds & UINT32_MAX;
    if (first >= end) return {};
    const std::size_t half = (end - first + 1) / 2;
    const std::size_t cut = front ? std::min(end, (first + half + grain - 1) / grain * grain)
                                  : std::max(first, (end - half) / grain * grain);
    const std::uint64_t left = front ? Packed(cut, end) : Packed(first, cut);
    if (!range.bounds.compare_exchange_weak(bounds, left, std::memory_order_acq_rel)) continue;
    return front ? Share{first, cut - first} : Share{cut, end - cut};
  }
}

}  // namespace penstock::shard::cpu
