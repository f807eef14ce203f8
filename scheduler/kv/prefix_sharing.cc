#include "scheduler/kv/prefix_sharing.h"

#include <algorithm>
#include <string>

namespace penstock::scheduler {
namespace {

// Logprobs of the prompt need every row of it. Contrastive search does not: cached blocks hold its
// hidden states as well.
bool NeedsEveryRow(const Work& work) {
  return work.request.logprobs.prompt_logprobs && work.generated.empty();
}

// Full blocks at the beginning of both.
std::uint32_t CommonBlocks(std::span<const TokenId> a, std::span<const TokenId> b,
                           std::uint32_t block_size) {
  const auto [end, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::uint32_t>(end - a.begin()) / block_size;
}

}  // namespace

std::span<const TokenId> PrefixSharing::Shareable(const Work& work) const {
  const std::size_t length = work.request.prompt.size() + work.generated.size();
  if (work.generated.empty()) return std::span(work.request.prompt).first(length - 1);
  work.CopyTokens(0, length - 1, scratch_);
  return scratch_;
}

PrefixMatch PrefixSharing::Match(const Work& work, StepId reader) const {
  if (!table_.cache().sharing() || NeedsEveryRow(work)) return {};
  return table_.cache().Match(regime_.Root(work), Shareable(work), reader);
}

std::optional<AwaitedPrefix> PrefixSharing::WhatToAwait(const Work& work, StepId reader) const {
  if (!table_.cache().sharing() || NeedsEveryRow(work)) return std::nullopt;
  const std::span<const TokenId> tokens = Shareable(work);
  const std::string root = regime_.Root(work);
  const PrefixMatch match = table_.cache().Match(root, tokens, reader);
  const std::uint32_t matched = match.blocks + match.planned;
  const std::uint32_t block_size = table_.cache().block_size();

  std::optional<AwaitedPrefix> best;
  for (const auto& [id, sequence] : table_.all()) {
    // Sequences that computed the last block of the match, or that continue after it.
    if (sequence.retiring || sequence.blocks.entered() < matched) continue;
    if (sequence.prefix_root != root) continue;
    if (matched > 0 && sequence.blocks.blocks()[matched - 1] != *match.last_any) continue;
    const std::uint32_t shared = SharedBlocks(sequence, tokens, matched);
    if (shared == match.blocks || (best && best->shared >= shared * block_size)) continue;
    best = AwaitedPrefix{sequence.request.request, shared * block_size, match.blocks * block_size};
  }
  return best;
}

// A recurrent model begins only where the sequence saves a snapshot.
std::uint32_t PrefixSharing::SharedBlocks(const Sequence& sequence, std::span<const TokenId> tokens,
                                          std::uint32_t matched) const {
  const bool recurrent = table_.cache().recurrent();
  const bool enters = sequence.blocks.entered() == matched && sequence.blocks.enters();
  if (sequence.PromptLeft() == 0 || !(recurrent || enters)) return matched;
  const std::uint32_t block_size = table_.cache().block_size();
  // After a preemption its output so far is computed like a prompt.
  sequence.CopyTokens(0, sequence.PromptLength(), other_);
  const std::uint32_t common = CommonBlocks(other_, tokens, block_size);
  if (!recurrent) return common;
  const std::uint32_t cut = sequence.cut / block_size;
  return sequence.prompt_planned < sequence.cut && cut <= common ? std::max(matched, cut) : matched;
}

std::optional<BlockId> PrefixSharing::NodeAt(const Sequence& sequence, std::uint32_t tokens) const {
  const BlockCache& cache = table_.cache();
  const std::uint32_t blocks = tokens / cache.block_size();
  if (sequence.blocks.entered() >= blocks) return sequence.blocks.blocks()[blocks - 1];
  sequence.CopyTokens(0, tokens, scratch_);
  const PrefixMatch match =
      cache.index().Lookup(sequence.prefix_root, scratch_, StepId(UINT64_MAX));
  return match.blocks == blocks ? match.last : std::nullopt;
}

void PrefixSharing::Enter(Sequence& sequence, StepId step) {
  BlockCache& cache = table_.cache();
  const std::uint32_t size = cache.block_size();
  while (sequence.blocks.MayEnter(cache, sequence.KnownLength())) {
    const std::uint32_t block = sequence.blocks.entered();
    sequence.CopyTokens(std::size_t{block} * size, size, scratch_);
    const auto node = sequence.blocks.Enter(cache, sequence.prefix_root, scratch_, step);
    Attach(sequence, node, block, step);
  }
  if (cache.window_tokens() > 0) Follow(sequence, step);
}

// The sequence computes tokens that are in the index, because blocks of its window were missing.
void PrefixSharing::Follow(Sequence& sequence, StepId step) {
  BlockCache& cache = table_.cache();
  const std::uint32_t size = cache.block_size();
  const std::uint32_t known = sequence.KnownLength();
  while (sequence.blocks.MayFollow(cache, known)) {
    const std::uint32_t block = sequence.blocks.followed();
    sequence.CopyTokens(std::size_t{block} * size, size, scratch_);
    Attach(sequence, sequence.blocks.Follow(cache, scratch_), block, step);
  }
}

void PrefixSharing::Attach(Sequence& sequence, std::optional<BlockId> node, std::uint32_t block,
                           StepId step) {
  if (table_.cache().window_tokens() == 0 || !node) return;
  table_.cache().window().Attach(*node, sequence.window.blocks()[block], step, sequence.id);
}

void PrefixSharing::Pin(Sequence& sequence, StepId step) {
  const Arrival& request = sequence.request;
  const auto pinned = std::min<std::size_t>(request.pinned_tokens, request.prompt.size());
  if (pinned == 0 || sequence.prefix_pinned || sequence.prompt_planned < pinned) return;
  sequence.prefix_pinned = true;
  table_.cache().Pin({request.request, sequence.id, sequence.prefix_root,
                      std::span(request.prompt).first(pinned), sequence.blocks.blocks(),
                      sequence.window.blocks(), step});
}

}  // namespace penstock::scheduler
