#include "scheduler/kv/pinned_prefixes.h"

#include <algorithm>

namespace penstock::scheduler {

PinnedPrefixes::PinnedPrefixes(PrefixIndex& index, std::uint32_t capacity, PinLimits limits)
    : index_(index), limits_(limits), own_(limits.prefixes > 0 ? capacity : 0) {}

void PinnedPrefixes::Keep(const User& user, std::vector<BlockId>& gone) {
  if (limits_.prefixes == 0) return;
  const std::size_t full = user.prefix.size() / index_.block_size();
  const PrefixMatch match = index_.Lookup(user.tenant, user.prefix, StepId(UINT64_MAX));
  if (match.blocks != full) return;  // what was found of it is not to be relied on
  const auto tail = user.prefix.subspan(full * index_.block_size());
  const auto same = std::ranges::find_if(pins_, [&](const Pin& pin) {
    return pin.last == match.last && pin.tenant == user.tenant &&
           std::ranges::equal(pin.tail, tail);
  });
  if (same != pins_.end()) {
    Note(PinChange::Kind::kUsed, *same, user.request);
    std::rotate(same, same + 1, pins_.end());
    return;
  }
  Pin pin;
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
  blocks_ += pin.blocks;
  Note(PinChange::Kind::kKept, pin, user.request);
  pins_.push_back(std::move(pin));
  while (pins_.size() > limits_.prefixes || (limits_.blocks > 0 && blocks_ > limits_.blocks)) {
    Drop(0, gone);
  }
}

std::optional<PinnedPrefixes::Tail> PinnedPrefixes::TailBehind(std::string_view tenant,
                                                               std::optional<BlockId> last,
                                                               std::span<const TokenId> rest,
                                                               StepId reader) const {
  std::optional<Tail> best;
  for (const Pin& pin : pins_) {
    if (pin.holder == Holder::kNoTail || pin.last != last || pin.step >= reader) continue;
    // A node is one tenant's, the beginning is everybody's.
    if (pin.tenant != tenant) continue;
    const auto end =
        std::mismatch(rest.begin(), rest.end(), pin.tail.begin(), pin.tail.end()).first;
    const auto tokens = static_cast<std::uint32_t>(end - rest.begin());
    if (tokens > 0 && (!best || tokens > best->tokens)) best = Tail{pin.tail_block, tokens};
  }
  return best;
}

// The node is pinned with all before it, so those need no pin of their own.
void PinnedPrefixes::PutTailIntoIndex(Pin& pin) {
  std::vector<BlockId> none;
  index_.Pin(pin.tail_block);
  if (pin.last) index_.Unpin(*pin.last, none);
  pin.holder = Holder::kIndex;
}

void PinnedPrefixes::Settle(SequenceId sequence) {
  for (Pin& pin : pins_) {
    if (pin.holder != Holder::kSequence || pin.lender != sequence) continue;
    if (index_.Contains(pin.tail_block)) {
      PutTailIntoIndex(pin);
    } else {
      pin.holder = Holder::kPin;
      own_[pin.tail_block.value()] = true;
    }
  }
}

bool PinnedPrefixes::GiveWay(std::vector<BlockId>& gone) {
  for (std::size_t i = 0; i < pins_.size(); ++i) {
    if (protected_ && pins_[i].holder != Holder::kNoTail && pins_[i].tail_block == *protected_) {
      continue;
    }
    Drop(i, gone);
    return true;
  }
  return false;
}

void PinnedPrefixes::Forget(std::string_view tenant, std::optional<RequestId> made_by,
                            std::vector<BlockId>& gone) {
  for (std::size_t i = pins_.size(); i-- > 0;) {
    if (pins_[i].tenant == tenant && (!made_by || pins_[i].made_by == *made_by)) Drop(i, gone);
  }
}

void PinnedPrefixes::DropSpoilt(std::optional<SequenceId> failed, std::vector<BlockId>& gone) {
  for (std::size_t i = pins_.size(); i-- > 0;) {
    const Pin& pin = pins_[i];
    const bool lent = pin.holder == Holder::kSequence && failed && pin.lender == *failed;
    const bool tail = pin.holder == Holder::kIndex && index_.IsSpoilt(pin.tail_block);
    if (lent || tail || (pin.last && index_.IsSpoilt(*pin.last))) Drop(i, gone);
  }
}

void PinnedPrefixes::DropAll(std::vector<BlockId>& gone) {
  while (!pins_.empty()) Drop(pins_.size() - 1, gone);
}

void PinnedPrefixes::Drop(std::size_t index, std::vector<BlockId>& gone) {
  const Pin pin = std::move(pins_[index]);
  pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(index));
  blocks_ -= pin.blocks;
  if (pin.holder == Holder::kIndex) {
    index_.Unpin(pin.tail_block, gone);
  } else if (pin.last) {
    index_.Unpin(*pin.last, gone);
  }
  if (pin.holder == Holder::kPin && own_[pin.tail_block.value()]) {
    own_[pin.tail_block.value()] = false;
    gone.push_back(pin.tail_block);
  }
  Note(PinChange::Kind::kDropped, pin, pin.made_by);
}

void PinnedPrefixes::Note(PinChange::Kind kind, const Pin& pin, RequestId by) {
  changes_.push_back({{}, kind, pin.made_by, by, pin.tokens, pin.blocks});
}

}  // namespace penstock::scheduler
