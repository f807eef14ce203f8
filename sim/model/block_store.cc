#include "sim/model/block_store.h"

#include <algorithm>

#include "sim/model/output_reader.h"

namespace penstock::sim {

using scheduler::Batching;
using scheduler::Config;
using scheduler::PinChange;

namespace {

// A root is the tenant, then the length of the texts and the adapter if there is one
// (GroupNeeds::RootOf).
std::string TenantOf(const std::string& root) { return root.substr(0, root.find('\0')); }

}  // namespace

BlockStore::BlockStore(const Config& config, const GroupCapacity& capacity)
    : sharing_(config.prefix_caching && capacity.shares_blocks &&
               config.batching != Batching::kStatic),
      config_(config),
      block_size_(capacity.block_size),
      blocks_(capacity.blocks),
      window_(capacity),
      snapshots_(capacity.snapshots) {}

std::optional<StoreBlock> BlockStore::InIndex(History history) const {
  for (StoreBlock block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].history == history) return block;
  }
  return std::nullopt;
}

StoreMatch BlockStore::Path(const std::string& root, std::span<const TokenId> tokens,
                            StepId reader) const {
  StoreMatch match;
  const std::vector<History> histories = HistoriesOf(root, tokens);
  for (std::size_t end = block_size_; end <= tokens.size(); end += block_size_) {
    const auto block = InIndex(histories[end - 1]);
    if (!block || blocks_[*block].invalid) break;
    const bool readable = match.planned.empty() && blocks_[*block].step < reader;
    (readable ? match.blocks : match.planned).push_back(*block);
    ++match.found;
  }
  return match;
}

StoreMatch BlockStore::Find(const std::string& root, std::span<const TokenId> tokens,
                            StepId reader) const {
  if (!sharing_) return {};
  StoreMatch match = Path(root, tokens, reader);
  if (recurrent() || window_.present()) {
    std::vector<StoreBlock> path = match.blocks;
    path.insert(path.end(), match.planned.begin(), match.planned.end());
    const std::size_t readable = LongestStart(match.blocks, reader);
    const std::size_t any = LongestStart(path, StepId(UINT64_MAX));
    match.blocks.resize(readable);
    match.planned.assign(path.begin() + static_cast<std::ptrdiff_t>(readable),
                         path.begin() + static_cast<std::ptrdiff_t>(any));
  }
  if (!match.planned.empty() || recurrent()) return match;
  const auto rest = tokens.subspan(match.blocks.size() * block_size_);
  const auto last = match.blocks.empty() ? std::nullopt : std::optional(match.blocks.back());
  for (const PinnedPrefix& pin : pins_) {
    if (!pin.tail_block || pin.root != root || pin.last != last || pin.step >= reader) continue;
    std::uint32_t same = 0;
    while (same < rest.size() && same < pin.tail.size() && rest[same] == pin.tail[same]) ++same;
    if (same <= match.tail_tokens) continue;
    match.tail = pin.tail_block;
    match.tail_tokens = same;
  }
  if (match.tail && window_.present() && !window_.CanRead(*match.tail, reader)) {
    match.tail.reset();
    match.tail_tokens = 0;
  }
  return match;
}

const BlockStore::Snapshot* BlockStore::SnapshotOf(StoreBlock block) const {
  const auto it = std::ranges::find(snapshots_, std::optional(block), &Snapshot::block);
  return it == snapshots_.end() ? nullptr : &*it;
}

std::size_t BlockStore::LongestStart(std::span<const StoreBlock> path, StepId reader) const {
  std::size_t length = path.size();
  for (;;) {
    const std::size_t before = length;
    if (window_.present()) length = window_.LongestMatch(path.first(length), reader);
    if (recurrent()) length = UpToSnapshot(path.first(length), reader);
    if (length == before) return length;
  }
}

std::size_t BlockStore::UpToSnapshot(std::span<const StoreBlock> path, StepId reader) const {
  for (std::size_t end = path.size(); end > 0; --end) {
    const Snapshot* const snapshot = SnapshotOf(path[end - 1]);
    if (snapshot != nullptr && snapshot->step < reader) return end;
  }
  return 0;
}

StoreSnapshot BlockStore::Restore(StoreBlock block) {
  const Snapshot* const of_block = SnapshotOf(block);
  if (of_block == nullptr) throw Difference{"a match ends at no snapshot"};
  const auto index = static_cast<StoreSnapshot>(of_block - snapshots_.data());
  snapshots_[index].used_at = ++clock_;
  return index;
}

// Takes a free snapshot, else the least recently used one.
std::optional<StoreSnapshot> BlockStore::Save(const std::string& root,
                                              std::span<const TokenId> tokens, StepId step,
                                              SequenceId writer) {
  const StoreMatch path = Path(root, tokens, StepId(UINT64_MAX));
  if (path.found * block_size_ < tokens.size() || SnapshotOf(path.blocks.back())) return {};
  const auto age = [](const Snapshot& each) { return each.block ? each.used_at : 0; };
  const auto oldest = std::ranges::min_element(snapshots_, {}, age);
  *oldest = {path.blocks.back(), step, writer, ++clock_};
  return static_cast<StoreSnapshot>(oldest - snapshots_.begin());
}

bool BlockStore::IsBefore(StoreBlock block, std::optional<StoreBlock> end) const {
  while (end && *end != block) end = blocks_[*end].before;
  return end.has_value();
}

bool BlockStore::IsPinned(StoreBlock block) const {
  return std::ranges::any_of(pins_, [&](const PinnedPrefix& pin) {
    const bool tail = pin.tail_block && blocks_[*pin.tail_block].history;
    return IsBefore(block, tail ? pin.tail_block : pin.last);
  });
}

// In the index, or the tail of a pinned prefix.
bool BlockStore::IsCached(StoreBlock block) const {
  if (!IsIdle(block)) return false;
  return blocks_[block].history.has_value() ||
         std::ranges::count(pins_, std::optional(block), &PinnedPrefix::tail_block) > 0;
}

std::uint32_t BlockStore::used() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(blocks_, [](const Block& block) { return block.holders > 0; }));
}

std::uint32_t BlockStore::retiring() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      blocks_, [](const Block& block) { return block.holders == 0 && block.ended > 0; }));
}

std::uint32_t BlockStore::cached() const {
  std::uint32_t count = 0;
  for (StoreBlock block = 0; block < blocks_.size(); ++block) count += IsCached(block);
  return count;
}

std::uint32_t BlockStore::idle() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      blocks_, [](const Block& block) { return block.holders + block.ended == 0; }));
}

// Evicts the least recently used block that no other one follows. Pinned prefixes go last.
StoreBlock BlockStore::Draw() {
  for (;;) {
    std::optional<StoreBlock> oldest;
    for (StoreBlock block = 0; block < blocks_.size(); ++block) {
      if (IsIdle(block) && !IsCached(block)) {
        blocks_[block] = Block{};
        ++blocks_[block].holders;
        return block;
      }
      if (!IsIdle(block) || !blocks_[block].history || IsPinned(block)) continue;
      if (!oldest || blocks_[block].left_at < blocks_[*oldest].left_at) oldest = block;
    }
    if (oldest) {
      ++evictions_;
      Remove(*oldest);
      continue;
    }
    DropOldestPin();
  }
}

void BlockStore::DropOldestPin() {
  std::size_t pin = 0;
  while (pin < pins_.size() && protected_ && pins_[pin].tail_block == protected_) ++pin;
  if (pin == pins_.size()) throw Difference{"no block can be evicted"};
  Drop(pin);
}

StoreBlock BlockStore::DrawInWindow() {
  for (;;) {
    const auto block = window_.Draw([this](StoreBlock node) { return IsPinnedInWindow(node); });
    if (block) return *block;
    DropOldestPin();
  }
}

bool BlockStore::IsPinnedInWindow(StoreBlock node) const {
  return std::ranges::any_of(pins_, [node](const PinnedPrefix& pin) {
    return std::ranges::count(pin.in_window, node) > 0;
  });
}

void BlockStore::Retire(StoreBlock block) {
  --blocks_[block].holders;
  ++blocks_[block].ended;
}

void BlockStore::Reclaim(StoreBlock block) {
  --blocks_[block].ended;
  if (!IsIdle(block)) return;
  blocks_[block].left_at = ++clock_;
  if (blocks_[block].invalid && !IsPinned(block)) Remove(block);
  if (!IsCached(block)) Detach(block);
}

// Nothing is found at a block that leaves the cache.
void BlockStore::Detach(StoreBlock block) {
  window_.Detach(block);
  for (Snapshot& each : snapshots_) {
    if (each.block == block) each.block.reset();
  }
}

void BlockStore::Remove(StoreBlock block) {
  Detach(block);
  blocks_[block].history.reset();
  blocks_[block].before.reset();
  blocks_[block].invalid = false;
}

bool BlockStore::Enter(StoreBlock block, std::optional<StoreBlock> before, History history,
                       StepId step) {
  if (!sharing_ || InIndex(history) || (before && blocks_[*before].invalid)) return false;
  blocks_[block].history = history;
  blocks_[block].before = before;
  blocks_[block].step = step;
  blocks_[block].number = ++entries_;
  return true;
}

std::optional<StoreNode> BlockStore::NodeWith(History history) const {
  const auto block = sharing_ ? InIndex(history) : std::nullopt;
  if (!block || blocks_[*block].invalid) return std::nullopt;
  return StoreNode{*block, blocks_[*block].number};
}

bool BlockStore::Has(const StoreNode& node) const {
  const Block& block = blocks_[node.block];
  return block.history && !block.invalid && block.number == node.number;
}

void BlockStore::Invalidate(std::optional<StoreBlock> first, SequenceId failed) {
  if (!sharing_) return;
  if (first) InvalidateFrom(*first);
  for (const StoreBlock node : window_.NodesOf(failed)) {
    if (blocks_[node].history) {
      InvalidateFrom(node);
    } else {
      window_.Detach(node);  // a pinned tail
    }
  }
  for (Snapshot& each : snapshots_) {
    if (each.writer == failed) each.block.reset();
  }
  DropInvalidPins(failed);
}

void BlockStore::InvalidateFrom(StoreBlock first) {
  std::vector<StoreBlock> wrong;
  for (StoreBlock block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].history && IsBefore(first, block)) wrong.push_back(block);
  }
  for (const StoreBlock block : wrong) blocks_[block].invalid = true;
  for (const StoreBlock block : wrong) {
    if (IsIdle(block) && !IsPinned(block)) Remove(block);
  }
}

void BlockStore::Pin(RequestId request, SequenceId sequence, const std::string& root,
                     std::span<const TokenId> prefix, std::span<const StoreBlock> blocks,
                     std::span<const std::optional<StoreBlock>> in_window, StepId step) {
  if (!sharing_ || config_.pinned_prefixes == 0) return;
  const std::size_t full = prefix.size() / block_size_;
  const StoreMatch match = Path(root, prefix, StepId(UINT64_MAX));
  if (match.blocks.size() != full) return;  // a part of it is invalid
  PinnedPrefix pin;
  if (full > 0) pin.last = match.blocks.back();
  pin.tail.assign(prefix.begin() + static_cast<std::ptrdiff_t>(full * block_size_), prefix.end());
  const auto same = std::ranges::find_if(pins_, [&](const PinnedPrefix& other) {
    return other.last == pin.last && other.root == root && other.tail == pin.tail;
  });
  if (same != pins_.end()) {
    Note(PinChange::Kind::kUsed, *same, request);
    std::rotate(same, same + 1, pins_.end());
    return;
  }
  pin.made_by = request;
  pin.root = root;
  pin.step = step;
  pin.blocks = static_cast<std::uint32_t>(full + !pin.tail.empty());
  pin.tokens = static_cast<std::uint32_t>(prefix.size());
  if (config_.pinned_blocks > 0 && pin.blocks > config_.pinned_blocks) return;
  if (!pin.tail.empty()) {
    pin.tail_block = blocks[full];
    if (!blocks_[blocks[full]].history) pin.lender = sequence;
  }
  if (window_.present()) PinInWindow(pin, match.blocks, sequence, in_window);
  Note(PinChange::Kind::kKept, pin, request);
  pins_.push_back(std::move(pin));
  const auto too_many = [this] {
    std::uint32_t sum = 0;
    for (const PinnedPrefix& each : pins_) sum += each.blocks;
    return pins_.size() > config_.pinned_prefixes ||
           (config_.pinned_blocks > 0 && sum > config_.pinned_blocks);
  };
  while (too_many()) Drop(0);
}

// The blocks that a sequence reads after the prefix.
void BlockStore::PinInWindow(PinnedPrefix& pin, std::span<const StoreBlock> path,
                             SequenceId sequence,
                             std::span<const std::optional<StoreBlock>> in_window) {
  const auto read = path.last(std::min(path.size(), window_.coverage()));
  pin.in_window.assign(read.begin(), read.end());
  if (!pin.tail_block) return;
  window_.Attach(*pin.tail_block, in_window[path.size()], pin.step, sequence);
  pin.in_window.push_back(*pin.tail_block);
}

void BlockStore::EndLoans(SequenceId sequence) {
  for (PinnedPrefix& pin : pins_) {
    if (pin.lender == sequence) pin.lender.reset();
  }
}

void BlockStore::Forget(const std::string& tenant, std::optional<RequestId> made_by) {
  for (std::size_t i = pins_.size(); i-- > 0;) {
    if (TenantOf(pins_[i].root) == tenant && (!made_by || pins_[i].made_by == *made_by)) Drop(i);
  }
}

void BlockStore::ForgetAll() {
  while (!pins_.empty()) Drop(pins_.size() - 1);
}

void BlockStore::DropInvalidPins(SequenceId failed) {
  const auto invalid = [this](std::optional<StoreBlock> block) {
    return block && blocks_[*block].history && blocks_[*block].invalid;
  };
  for (std::size_t i = pins_.size(); i-- > 0;) {
    if (pins_[i].lender == failed || invalid(pins_[i].tail_block) || invalid(pins_[i].last)) {
      Drop(i);
    }
  }
}

// Its blocks leave the pin from the last to the first.
void BlockStore::Drop(std::size_t index) {
  const PinnedPrefix pin = std::move(pins_.at(index));
  pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(index));
  for (const StoreBlock node : pin.in_window) {
    if (!IsPinnedInWindow(node)) window_.Unpin(node);
  }
  const bool tail = pin.tail_block && blocks_[*pin.tail_block].history;
  for (auto block = tail ? pin.tail_block : pin.last; block;) {
    const auto before = blocks_[*block].before;
    if (IsIdle(*block) && !IsPinned(*block)) {
      blocks_[*block].left_at = ++clock_;
      if (blocks_[*block].invalid) Remove(*block);
    }
    block = before;
  }
  if (pin.tail_block && IsIdle(*pin.tail_block) && !IsCached(*pin.tail_block)) {
    Detach(*pin.tail_block);
  }
  Note(PinChange::Kind::kDropped, pin, pin.made_by);
}

void BlockStore::Note(PinChange::Kind kind, const PinnedPrefix& pin, RequestId by) {
  changes_.push_back({{}, kind, pin.made_by, by, pin.tokens, pin.blocks});
}

}  // namespace penstock::sim
