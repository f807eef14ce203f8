#include "scheduler/kv/pinned_prefixes.h"

#include <algorithm>

#include "scheduler/kv/text_regime.h"

namespace penstock::scheduler {

PinnedPrefixes::PinnedPrefixes(PrefixIndex& index, AttachedBlocks* window, std::uint32_t capacity,
                               PinLimits limits)
    : index_(index), window_(window), limits_(limits), own_(limits.prefixes > 0 ? capacity : 0) {}

void PinnedPrefixes::Pin(const User& user, std::vector<BlockId>& dropped) {
  if (limits_.prefixes == 0) return;
  const std::size_t full = user.prefix.size() / index_.block_size();
  const PrefixMatch match = index_.Lookup(user.tenant, user.prefix, StepId(UINT64_MAX));
  if (match.blocks != full) return;  // a part of it is invalid
  const auto tail = user.prefix.subspan(full * index_.block_size());
  const auto same = std::ranges::find_if(pins_, [&](const Entry& pin) {
    return pin.last == match.last && pin.tenant == user.tenant &&
           std::ranges::equal(pin.tail, tail);
  });
  if (same != pins_.end()) {
    Note(PinChange::Kind::kUsed, *same, user.request);
    std::rotate(same, same + 1, pins_.end());
    return;
  }
  Entry pin;
  pin.made_by = user.request;
  pin.tenant = user.tenant;
  pin.last = match.last;
  pin.tail.assign(tail.begin(), tail.end());
  pin.step = user.step;
  pin.blocks = static_cast<std::uint32_t>(full) + (tail.empty() ? 0 : 1);
  pin.tokens = static_cast<std::uint32_t>(user.prefix.size());
  if (limits_.blocks > 0 && pin.blocks > limits_.blocks) return;
  if (pin.last) index_.Pin(*pin.last);
  if (!tail.empty()) {
    pin.tail_block = user.blocks[full];
    pin.holder = Holder::kSequence;
    pin.lender = user.sequence;
    if (index_.Contains(pin.tail_block)) PutTailIntoIndex(pin);
  }
  if (window_ != nullptr) PinWindow(pin, user);
  blocks_ += pin.blocks;
  Note(PinChange::Kind::kKept, pin, user.request);
  pins_.push_back(std::move(pin));
  while (pins_.size() > limits_.prefixes || (limits_.blocks > 0 && blocks_ > limits_.blocks)) {
    Drop(0, dropped);
  }
}

void PinnedPrefixes::PinWindow(Entry& pin, const User& user) {
  if (pin.last) index_.AppendPath(*pin.last, pin.in_window);
  const std::size_t before =
      pin.in_window.size() - std::min<std::size_t>(pin.in_window.size(), window_->coverage());
  pin.in_window.erase(pin.in_window.begin(),
                      pin.in_window.begin() + static_cast<std::ptrdiff_t>(before));
  if (!pin.tail.empty()) {
    const std::size_t full = user.prefix.size() / index_.block_size();
    const BlockId block = user.window_blocks[full];
    if (block != kNoBlock) window_->Attach(pin.tail_block, block, user.step, user.sequence);
    pin.in_window.push_back(pin.tail_block);
  }
  for (const BlockId node : pin.in_window) window_->Pin(node);
}

std::optional<PinnedPrefixes::Tail> PinnedPrefixes::TailAfter(std::string_view tenant,
                                                              std::optional<BlockId> last,
                                                              std::span<const TokenId> rest,
                                                              StepId reader) const {
  std::optional<Tail> best;
  for (const Entry& pin : pins_) {
    if (pin.holder == Holder::kNoTail || pin.last != last || pin.step >= reader) continue;
    // A node belongs to one tenant; without a node the tenants must be compared.
    if (pin.tenant != tenant) continue;
    const auto end =
        std::mismatch(rest.begin(), rest.end(), pin.tail.begin(), pin.tail.end()).first;
    const auto tokens = static_cast<std::uint32_t>(end - rest.begin());
    if (tokens > 0 && (!best || tokens > best->tokens)) best = Tail{pin.tail_block, tokens};
  }
  return best;
}

// Pinning a node pins all nodes before it, so the pin of the last full block is not needed.
void PinnedPrefixes::PutTailIntoIndex(Entry& pin) {
  std::vector<BlockId> none;
  index_.Pin(pin.tail_block);
  if (pin.last) index_.Unpin(*pin.last, none);
  pin.holder = Holder::kIndex;
}

void PinnedPrefixes::BeginReclaim(SequenceId sequence) {
  for (Entry& pin : pins_) {
    if (pin.holder != Holder::kSequence || pin.lender != sequence) continue;
    if (index_.Contains(pin.tail_block)) {
      PutTailIntoIndex(pin);
    } else {
      pin.holder = Holder::kPin;
      own_[pin.tail_block.value()] = true;
    }
  }
}

bool PinnedPrefixes::EvictOldest(std::vector<BlockId>& dropped) {
  for (std::size_t i = 0; i < pins_.size(); ++i) {
    if (protected_ && pins_[i].holder != Holder::kNoTail && pins_[i].tail_block == *protected_) {
      continue;
    }
    Drop(i, dropped);
    return true;
  }
  return false;
}

void PinnedPrefixes::Forget(std::string_view tenant, std::optional<RequestId> made_by,
                            std::vector<BlockId>& dropped) {
  for (std::size_t i = pins_.size(); i-- > 0;) {
    if (!IsRootOf(pins_[i].tenant, tenant)) continue;
    if (!made_by || pins_[i].made_by == *made_by) Drop(i, dropped);
  }
}

void PinnedPrefixes::DropInvalid(std::optional<SequenceId> failed, std::vector<BlockId>& dropped) {
  for (std::size_t i = pins_.size(); i-- > 0;) {
    const Entry& pin = pins_[i];
    const bool lent = pin.holder == Holder::kSequence && failed && pin.lender == *failed;
    const bool tail = pin.holder == Holder::kIndex && index_.IsInvalid(pin.tail_block);
    if (lent || tail || (pin.last && index_.IsInvalid(*pin.last))) Drop(i, dropped);
  }
}

void PinnedPrefixes::DropAll(std::vector<BlockId>& dropped) {
  while (!pins_.empty()) Drop(pins_.size() - 1, dropped);
}

void PinnedPrefixes::Drop(std::size_t index, std::vector<BlockId>& dropped) {
  const Entry pin = std::move(pins_[index]);
  pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(index));
  blocks_ -= pin.blocks;
  for (const BlockId node : pin.in_window) window_->Unpin(node);
  if (pin.holder == Holder::kIndex) {
    index_.Unpin(pin.tail_block, dropped);
  } else if (pin.last) {
    index_.Unpin(*pin.last, dropped);
  }
  if (pin.holder == Holder::kPin && own_[pin.tail_block.value()]) {
    own_[pin.tail_block.value()] = false;
    dropped.push_back(pin.tail_block);
  }
  Note(PinChange::Kind::kDropped, pin, pin.made_by);
}

void PinnedPrefixes::Note(PinChange::Kind kind, const Entry& pin, RequestId by) {
  changes_.push_back({{}, kind, pin.made_by, by, pin.tokens, pin.blocks});
}

}  // namespace penstock::scheduler
