#include "sim/model/window_store.h"

#include <algorithm>

#include "sim/model/output_reader.h"

namespace penstock::sim {

std::uint32_t WindowEntries::held() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(blocks, [](const auto& block) { return block.has_value(); }));
}

// A row reads its own block, and the blocks with the window - 1 positions before it.
WindowStore::WindowStore(const GroupCapacity& capacity)
    : window_(capacity.window),
      block_size_(capacity.block_size),
      coverage_(window_ > 0 ? (window_ - 1 + block_size_ - 1) / block_size_ : 0),
      blocks_(window_ > 0 ? capacity.window_blocks : 0) {}

std::optional<StoreBlock> WindowStore::Of(StoreBlock node) const {
  const auto it = std::ranges::find(blocks_, std::optional(node), &Block::node);
  if (it == blocks_.end()) return std::nullopt;
  return static_cast<StoreBlock>(it - blocks_.begin());
}

bool WindowStore::CanRead(StoreBlock node, StepId reader) const {
  const auto block = Of(node);
  return block && blocks_[*block].step < reader;
}

std::size_t WindowStore::LongestMatch(std::span<const StoreBlock> path, StepId reader) const {
  for (std::size_t end = path.size(); end > 0; --end) {
    const auto window = path.first(end).last(std::min(end, coverage_));
    if (std::ranges::all_of(window, [&](StoreBlock node) { return CanRead(node, reader); })) {
      return end;
    }
  }
  return 0;
}

std::vector<StoreBlock> WindowStore::NodesOf(SequenceId writer) const {
  std::vector<StoreBlock> nodes;
  for (const Block& block : blocks_) {
    if (block.node && block.writer == writer) nodes.push_back(*block.node);
  }
  return nodes;
}

void WindowStore::Attach(StoreBlock node, std::optional<StoreBlock> block, StepId step,
                         SequenceId writer) {
  if (!present() || !block || Of(node) || blocks_[*block].node) return;
  blocks_[*block].node = node;
  blocks_[*block].step = step;
  blocks_[*block].writer = writer;
}

void WindowStore::Detach(StoreBlock node) {
  if (const auto block = Of(node)) blocks_[*block].node.reset();
}

void WindowStore::Unpin(StoreBlock node) {
  if (const auto block = Of(node)) Leave(blocks_[*block]);
}

void WindowStore::Leave(Block& block) {
  if (block.idle()) block.left_at = ++clock_;
}

std::optional<StoreBlock> WindowStore::Draw(const std::function<bool(StoreBlock)>& is_pinned) {
  std::optional<StoreBlock> oldest;
  for (StoreBlock id = 0; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    if (!block.idle() || (block.node && is_pinned(*block.node))) continue;
    const auto age = [](const Block& each) { return each.node ? each.left_at : 0; };
    if (!oldest || age(block) < age(blocks_[*oldest])) oldest = id;
  }
  if (oldest) {
    blocks_[*oldest] = Block{};
    blocks_[*oldest].holders = 1;
  }
  return oldest;
}

void WindowStore::Adopt(std::span<const StoreBlock> path, WindowEntries& entries) {
  if (!present()) return;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool read = i + coverage_ >= path.size();
    entries.blocks.push_back(read ? Of(path[i]) : std::nullopt);
    if (!read) continue;
    if (!entries.blocks.back()) throw Difference{"a match has no block of its window"};
    ++blocks_[*entries.blocks.back()].holders;
  }
}

void WindowStore::MoveTo(std::uint64_t position, WindowEntries& entries) {
  for (std::size_t i = 0; i < entries.blocks.size(); ++i) {
    auto& entry = entries.blocks[i];
    const bool read = (i + 1) * block_size_ + window_ > position + 1;
    if (read || !entry) continue;
    --blocks_[*entry].holders;
    Leave(blocks_[*entry]);
    entry.reset();
  }
}

void WindowStore::Retire(WindowEntries& entries) {
  entries.ended = true;
  for (const auto& entry : entries.blocks) {
    if (!entry) continue;
    --blocks_[*entry].holders;
    ++blocks_[*entry].ended;
  }
}

// The cache keeps the beginning longest.
void WindowStore::Reclaim(WindowEntries& entries) {
  for (std::size_t i = entries.blocks.size(); i-- > 0;) {
    const auto& entry = entries.blocks[i];
    if (!entry) continue;
    --blocks_[*entry].ended;
    Leave(blocks_[*entry]);
  }
  entries.blocks.clear();
}

std::uint32_t WindowStore::used() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(blocks_, [](const Block& block) { return block.holders > 0; }));
}

std::uint32_t WindowStore::retiring() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      blocks_, [](const Block& block) { return block.holders == 0 && block.ended > 0; }));
}

std::uint32_t WindowStore::cached() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      blocks_, [](const Block& block) { return block.idle() && block.node.has_value(); }));
}

std::uint32_t WindowStore::free() const { return total() - used() - retiring() - cached(); }

}  // namespace penstock::sim
