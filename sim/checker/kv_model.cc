#include "sim/checker/kv_model.h"

#include <algorithm>

namespace penstock::sim {
namespace {

std::string Name(SequenceId sequence) { return "sequence " + std::to_string(sequence.value()); }
std::string Name(BlockId block) { return "block " + std::to_string(block.value()); }

}  // namespace

KvModel::KvModel(const GroupCapacity& capacity)
    : block_size_(capacity.block_size), blocks_(capacity.blocks) {}

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
  findings.Add("G1", Name(block) + " is not one of " + std::to_string(blocks_.size()));
  return false;
}

void KvModel::Append(KvTable& table, BlockId id, Findings& findings) {
  if (!Exists(id, findings)) return;
  Block& block = blocks_[id.value()];
  const std::uint64_t end = (table.blocks.size() + 1) * std::uint64_t{block_size_};
  const bool shared = end <= table.cached_length;
  if (!shared) {
    if (block.live + block.retiring > 0) {
      findings.Add("G1", Name(id) + " is given to " + Name(table.sequence) + " while " +
                             Name(block.writer) + " or its readers hold it");
    }
    block.cells.assign(block_size_, 0);
    block.writer = table.sequence;
  }
  Count(block, -1);
  ++block.live;
  Count(block, 1);
  table.blocks.push_back(id);
}

void KvModel::Copy(BlockId from, BlockId to, const KvTable& table, Findings& findings) {
  if (!Exists(from, findings) || !Exists(to, findings)) return;
  Block& target = blocks_[to.value()];
  if (target.writer != table.sequence) {
    findings.Add("G1", Name(table.sequence) + " copies into " + Name(to) + " of another writer");
  }
  target.cells = blocks_[from.value()].cells;
}

void KvModel::Write(const KvTable& table, std::uint32_t position, Findings& findings) {
  const std::uint32_t index = position / block_size_;
  if (index >= table.blocks.size() || position >= table.histories.size()) return;
  Block& block = blocks_[table.blocks[index].value()];
  if (block.writer != table.sequence) {
    findings.Add("G1", Name(table.sequence) + " writes " + Name(table.blocks[index]) +
                           ", which is written by " + Name(block.writer));
  }
  block.cells.resize(block_size_);
  block.cells[position % block_size_] = table.histories[position];
}

void KvModel::CheckPrefix(const KvTable& table, Findings& findings) const {
  for (std::uint32_t p = 0; p < table.cached_length; ++p) {
    const std::uint32_t index = p / block_size_;
    if (index >= table.blocks.size()) break;
    const Block& block = blocks_[table.blocks[index].value()];
    const std::uint32_t cell = p % block_size_;
    if (cell < block.cells.size() && block.cells[cell] == table.histories[p]) continue;
    findings.Add("G1", Name(table.sequence) + " reads position " + std::to_string(p) + " from " +
                           Name(table.blocks[index]) + ", which does not hold its tokens");
    return;
  }
}

void KvModel::NeedPositions(const KvTable& table, std::uint64_t positions,
                            Findings& findings) const {
  if (positions <= table.blocks.size() * std::uint64_t{block_size_}) return;
  findings.Add("G1", Name(table.sequence) + " needs " + std::to_string(positions) +
                         " positions and holds " + std::to_string(table.blocks.size()) +
                         " blocks of " + std::to_string(block_size_));
}

void KvModel::Invalidate(const KvTable& table) {
  for (const BlockId id : table.blocks) {
    Block& block = blocks_[id.value()];
    if (block.writer == table.sequence && block.live + block.retiring == 1) block.cells.clear();
  }
}

void KvModel::Retire(const KvTable& table) {
  for (const BlockId id : table.blocks) {
    Block& block = blocks_[id.value()];
    Count(block, -1);
    --block.live;
    ++block.retiring;
    Count(block, 1);
  }
}

void KvModel::Reclaim(const KvTable& table) {
  for (const BlockId id : table.blocks) {
    Block& block = blocks_[id.value()];
    Count(block, -1);
    --block.retiring;
    Count(block, 1);
  }
}

}  // namespace penstock::sim
