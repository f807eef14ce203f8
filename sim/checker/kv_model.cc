#include "sim/checker/kv_model.h"

#include <algorithm>
#include <utility>

namespace penstock::sim {
namespace {

std::string KvName(SequenceId sequence) { return "sequence " + std::to_string(sequence.value()); }
std::string KvName(BlockId block) { return "block " + std::to_string(block.value()); }

}  // namespace

KvModel::KvModel(std::uint32_t blocks, std::uint32_t block_size, std::uint32_t window)
    : block_size_(block_size), window_(window), blocks_(blocks) {}

std::size_t KvModel::Before(std::uint64_t position) const {
  return window_ == 0 || position < window_ ? 0 : (position + 1 - window_) / block_size_;
}

std::uint32_t KvModel::Held(const KvTable& table) const {
  const auto held = [](BlockId block) { return block != kNoBlock; };
  return static_cast<std::uint32_t>(std::ranges::count_if(BlocksOf(table), held));
}

void KvModel::Count(const Block& block, int sign) {
  const auto one = static_cast<std::uint32_t>(sign);
  if (block.live > 0) {
    used_ += one;
  } else if (block.retiring > 0) {
    retiring_ += one;
  }
}

bool KvModel::Exists(BlockId block, Findings& findings) const {
  if (block.value() < blocks_.size()) return true;
  findings.Add("G1", KvName(block) + " is not one of " + std::to_string(blocks_.size()));
  return false;
}

void KvModel::Append(KvTable& table, BlockId id, Findings& findings) {
  std::vector<BlockId>& blocks = BlocksOf(table);
  if (id == kNoBlock && blocks.size() < Before(table.cached_length)) return blocks.push_back(id);
  if (!Exists(id, findings)) return;
  Block& block = blocks_[id.value()];
  const std::uint64_t end = (blocks.size() + 1) * std::uint64_t{block_size_};
  const bool shared = end <= table.cached_length;
  if (!shared) {
    if (block.live + block.retiring > 0) {
      findings.Add("G1", KvName(id) + " is given to " + KvName(table.sequence) + " while " +
                             KvName(block.writer) + " or its readers hold it");
    }
    block.cells.assign(block_size_, 0);
    block.writer = table.sequence;
  }
  Count(block, -1);
  ++block.live;
  Count(block, 1);
  blocks.push_back(id);
}

void KvModel::Copy(BlockId from, BlockId to, const KvTable& table, Findings& findings) {
  if (!Exists(from, findings) || !Exists(to, findings)) return;
  Block& target = blocks_[to.value()];
  if (target.writer != table.sequence) {
    findings.Add("G1",
                 KvName(table.sequence) + " copies into " + KvName(to) + " of another writer");
  }
  target.cells = blocks_[from.value()].cells;
}

void KvModel::Write(const KvTable& table, std::uint32_t position, Findings& findings) {
  const std::uint32_t index = position / block_size_;
  const std::vector<BlockId>& blocks = BlocksOf(table);
  if (index >= blocks.size() || position >= table.histories.size()) return;
  if (blocks[index] == kNoBlock) return;  // its window has passed the position
  Block& block = blocks_[blocks[index].value()];
  if (block.writer != table.sequence) {
    findings.Add("G1", KvName(table.sequence) + " writes " + KvName(blocks[index]) +
                           ", which is written by " + KvName(block.writer));
  }
  block.cells.resize(block_size_);
  block.cells[position % block_size_] = table.histories[position];
}

void KvModel::MoveTo(KvTable& table, std::uint64_t position) {
  std::vector<BlockId>& blocks = BlocksOf(table);
  const std::size_t end = std::min(Before(position), blocks.size());
  for (std::size_t i = 0; i < end; ++i) {
    const BlockId id = std::exchange(blocks[i], kNoBlock);
    if (id == kNoBlock) continue;
    Block& block = blocks_[id.value()];
    Count(block, -1);
    --block.live;
    Count(block, 1);
  }
}

void KvModel::CheckPrefix(const KvTable& table, Findings& findings) const {
  const std::vector<BlockId>& blocks = BlocksOf(table);
  const std::uint32_t unread =
      window_ == 0 ? 0 : table.cached_length + 1 - std::min(table.cached_length + 1, window_);
  for (std::uint32_t p = unread; p < table.cached_length; ++p) {
    const std::uint32_t index = p / block_size_;
    if (index >= blocks.size() || blocks[index] == kNoBlock) break;
    const Block& block = blocks_[blocks[index].value()];
    const std::uint32_t cell = p % block_size_;
    if (cell < block.cells.size() && block.cells[cell] == table.histories[p]) continue;
    findings.Add("G1", KvName(table.sequence) + " reads position " + std::to_string(p) + " from " +
                           KvName(blocks[index]) + ", which does not hold its tokens");
    return;
  }
}

void KvModel::NeedPositions(const KvTable& table, std::uint64_t positions,
                            Findings& findings) const {
  if (positions <= BlocksOf(table).size() * std::uint64_t{block_size_}) return;
  findings.Add("G1", KvName(table.sequence) + " needs " + std::to_string(positions) +
                         " positions and holds " + std::to_string(BlocksOf(table).size()) +
                         " blocks of " + std::to_string(block_size_));
}

void KvModel::Invalidate(const KvTable& table) {
  for (const BlockId id : BlocksOf(table)) {
    if (id == kNoBlock) continue;
    Block& block = blocks_[id.value()];
    if (block.writer == table.sequence && block.live + block.retiring == 1) block.cells.clear();
  }
}

void KvModel::Retire(const KvTable& table) {
  for (const BlockId id : BlocksOf(table)) {
    if (id == kNoBlock) continue;
    Block& block = blocks_[id.value()];
    Count(block, -1);
    --block.live;
    ++block.retiring;
    ++retired_holders_;
    Count(block, 1);
  }
}

void KvModel::Reclaim(const KvTable& table) {
  for (const BlockId id : BlocksOf(table)) {
    if (id == kNoBlock) continue;
    Block& block = blocks_[id.value()];
    Count(block, -1);
    --block.retiring;
    --retired_holders_;
    Count(block, 1);
  }
}

}  // namespace penstock::sim
