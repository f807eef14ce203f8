#include "shard/executor/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::shard {
namespace {

// " (45.0 KiB per token, 2.3 KiB of it hidden states; layers with a window of 1024: 9.0 KiB per
// token, at most 14.2 MiB per sequence; 75.0 MiB of states per sequence)".
std::string PerToken(const MemoryNeeds& needs) {
  std::string text = HumanBytes(needs.kv_bytes_per_token) + " per token";
  const auto part = [&text](std::uint64_t bytes, const char* what) {
    if (bytes > 0) text += ", " + HumanBytes(bytes) + " of it " + what;
  };
  part(needs.hidden_bytes_per_token, "hidden states");
  part(needs.latent_bytes_per_token, "latents and RoPE keys");
  if (needs.kv_bytes_per_token == 0) text.clear();
  const auto more = [&text](const std::string& next) { text += (text.empty() ? "" : "; ") + next; };
  if (needs.window > 0) {
    more("layers with a window of " + std::to_string(needs.window) + ": " +
         HumanBytes(needs.window_bytes_per_token) + " per token, at most " +
         HumanBytes(needs.window_bytes) + " per sequence");
  }
  if (needs.state_bytes > 0) more(HumanBytes(needs.state_bytes) + " of states per sequence");
  return text.empty() ? "" : " (" + text + ")";
}

// "64 sequences and 15 drafts".
std::string StateOwners(const StatePlan& states) {
  const std::string drafts =
      states.drafts == 0 ? "" : " and " + std::to_string(states.drafts) + " drafts";
  return std::to_string(states.sequences) + " sequences" + drafts;
}

// `beside`: what the rank needs besides blocks, ", and …".
absl::Status NoBlockFitsError(std::uint64_t bytes, const PagedLayout& layout,
                              const std::string& beside = "") {
  return absl::ResourceExhaustedError("--kv-cache-memory: " + HumanBytes(bytes) +
                                      " for a rank; must be at least one block of " +
                                      HumanBytes(layout.BytesPerBlock()) + beside);
}

}  // namespace

std::uint64_t ScratchBytes(const Program& program, std::uint32_t step_tokens,
                           std::uint32_t logit_rows, std::uint64_t element_bytes) {
  std::uint64_t per_row = 0;
  for (std::size_t i = 0; i < kBufferCount; ++i) {
    if (static_cast<Buffer>(i) != Buffer::kLogits) per_row += program.widths[i];
  }
  const std::uint64_t logits = std::uint64_t{logit_rows} * program.Width(Buffer::kLogits);
  // The host gets float32 logits of the whole vocabulary.
  const std::uint64_t host = std::uint64_t{logit_rows} * program.vocabulary * sizeof(float);
  return (per_row * step_tokens + logits) * element_bytes + host;
}

absl::StatusOr<std::uint64_t> ChooseKvBytes(const MemoryNeeds& needs, std::uint64_t free_bytes,
                                            std::uint64_t wanted_bytes) {
  if (needs.kv.bytes > 0) {
    if (needs.kv.bytes <= free_bytes) return needs.kv.bytes;
    return absl::ResourceExhaustedError(
        "--kv-cache-memory: " + HumanBytes(needs.kv.bytes) + " for a rank; must be at most " +
        HumanBytes(free_bytes) + ", what is free for rank " + std::to_string(needs.rank) +
        (needs.limit.empty() ? "" : " (limit: " + needs.limit + ")"));
  }
  if (needs.kv.share > 0) {
    return static_cast<std::uint64_t>(std::floor(needs.kv.share * static_cast<double>(free_bytes)));
  }
  const double most = needs.auto_share * static_cast<double>(free_bytes);
  return std::min(wanted_bytes, static_cast<std::uint64_t>(most) / std::max(1u, needs.local_ranks));
}

absl::StatusOr<std::string> DescribeMemoryPlan(const MemoryNeeds& needs, std::uint64_t free_bytes) {
  std::string kv = "as much as needed, at most " +
                   std::to_string(std::lround(100 * needs.auto_share)) + " % of what is left";
  std::uint64_t total = needs.weight_bytes + needs.adapter_bytes + needs.scratch_bytes;
  const std::uint64_t left = free_bytes - std::min(free_bytes, total);
  if (needs.kv.bytes > 0 || needs.kv.share > 0) {
    const std::uint64_t share =
        static_cast<std::uint64_t>(needs.kv.share * static_cast<double>(left));
    const std::uint64_t bytes = needs.kv.bytes > 0 ? needs.kv.bytes : share;
    kv = HumanBytes(bytes);
    total += bytes;
  }
  const std::string text =
      "memory plan of rank " + std::to_string(needs.rank) + ": weights " +
      HumanBytes(needs.weight_bytes) +
      (needs.adapter_bytes > 0 ? ", adapters " + HumanBytes(needs.adapter_bytes) : "") +
      ", scratch " + HumanBytes(needs.scratch_bytes) + " for steps of " +
      std::to_string(needs.scratch_step_tokens) + " tokens, KV cache " + kv + PerToken(needs) +
      "; this takes " + HumanBytes(total) + " of " + HumanBytes(free_bytes) + " free" +
      (needs.limit.empty() ? "" : " (limit: " + needs.limit + ")");
  if (total <= free_bytes) return text;
  const bool chosen = needs.kv.bytes > 0 || needs.kv.share > 0;
  return absl::ResourceExhaustedError(
      text + ": it does not fit; " +
      (chosen ? "lower --kv-cache-memory"
              : "free memory, or take --quantize int8 or a smaller model"));
}

absl::Status CheckOneBlockFits(const KvMemory& kv, const PagedLayout& layout) {
  if (kv.bytes == 0 || kv.bytes >= layout.BytesPerBlock()) return absl::OkStatus();
  return NoBlockFitsError(kv.bytes, layout);
}

// Two plans are in flight while blocks before the window of a third are freed.
std::uint32_t MostWindowBlocks(const PagedLayout& layout, std::uint32_t window,
                               const v1::Limits& limits) {
  const std::uint64_t step =
      std::max<std::uint64_t>(limits.max_step_tokens(), kMaxStepsBegun * limits.max_decode_rows());
  const std::uint64_t tokens = std::min<std::uint64_t>(window + step, limits.max_sequence_length());
  const std::uint32_t most = layout.BlocksFor(limits.max_sequence_length());
  // The window begins anywhere in a block.
  return std::min(most, layout.BlocksFor(static_cast<std::uint32_t>(tokens)) + 1);
}

std::string CachePlan::BlocksText(const PoolSize& pool) const {
  return std::to_string(pool.blocks[0]) + " blocks of " + std::to_string(layout_.block_size) +
         " tokens";
}

absl::Status CachePlan::NoBlockFits(std::uint64_t bytes, const std::string& beside) const {
  return NoBlockFitsError(bytes, layout_, beside);
}

KvBlocks CachePlan::Wanted(const v1::Limits& limits) const {
  const std::uint64_t each = layout_.BlocksFor(limits.max_sequence_length());
  const std::uint64_t windows = window_ == 0 ? each : MostWindowBlocks(layout_, window_, limits);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  const auto all = [&](std::uint64_t blocks) {
    return static_cast<std::uint32_t>(std::min(kMost, blocks * limits.max_sequences()));
  };
  return {all(each), all(windows)};
}

KvBlocks CachePlan::FitBlocks(std::uint64_t bytes, const v1::Limits& limits) const {
  if (layout_.GroupCount() == 1 || window_ == 0) return layout_.BlocksIn(bytes);
  const KvBlocks wanted = Wanted(limits);
  const std::uint64_t first = layout_.GroupBytesPerBlock(0);
  const std::uint64_t second = layout_.GroupBytesPerBlock(1);
  const auto fit = [](std::uint64_t memory, std::uint64_t block, std::uint32_t most) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, memory / block));
  };
  // Blocks of group 0 without memory only number the texts.
  if (first == 0) return {wanted[0], fit(bytes, second, wanted[0])};
  const std::uint32_t both = layout_.BlocksIn(bytes);
  if (both <= wanted[1]) return both;
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  return {fit(bytes - second * wanted[1], first, kMost), wanted[1]};
}

std::uint64_t CachePlan::WantedBytes(const v1::Limits& limits) const {
  const std::uint64_t bytes = layout_.Bytes(Wanted(limits));
  const std::uint64_t snapshots = states_.bytes * states_.max_snapshots;
  return bytes + states_.Bytes() + std::min(snapshots, bytes / (kSnapshotShare - 1));
}

absl::StatusOr<PoolSize> CachePlan::Fit(std::uint64_t bytes, const v1::Limits& limits) const {
  const std::uint64_t left = bytes - std::min(bytes, states_.Bytes());
  PoolSize pool;
  if (states_.bytes > 0) {
    pool.snapshots = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(states_.max_snapshots, left / kSnapshotShare / states_.bytes));
  }
  pool.blocks = FitBlocks(left - pool.snapshots * states_.bytes, limits);
  const bool fits = pool.blocks[0] > 0 && (layout_.GroupCount() == 1 || pool.blocks[1] > 0);
  if (fits) return pool;
  const std::string states = states_.bytes == 0
                                 ? ""
                                 : ", and " + HumanBytes(states_.Bytes()) + " for the states of " +
                                       StateOwners(states_) + " (--max-batch-size bounds them)";
  return NoBlockFits(bytes, states);
}

std::uint32_t CachePlan::LongestSequence(const PoolSize& pool, const v1::Limits& limits) const {
  std::uint64_t blocks = pool.blocks[0];
  const bool windows = layout_.GroupCount() > 1 && window_ > 0;
  if (windows && pool.blocks[1] < MostWindowBlocks(layout_, window_, limits)) {
    blocks = std::min<std::uint64_t>(blocks, pool.blocks[1]);
  }
  const std::uint64_t tokens = blocks * layout_.block_size;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.max_sequence_length(), tokens));
}

std::uint64_t CachePlan::Bytes(const PoolSize& pool) const {
  return layout_.Bytes(pool.blocks) + states_.Bytes() + pool.snapshots * states_.bytes;
}

std::string CachePlan::Describe(const PoolSize& pool) const {
  std::string text = BlocksText(pool);
  if (layout_.GroupCount() > 1) {
    text += ", " + std::to_string(pool.blocks[1]) + " for layers with a window";
  }
  if (states_.bytes > 0) {
    const std::string snapshots =
        pool.snapshots == 0 ? "" : " and " + std::to_string(pool.snapshots) + " snapshots";
    text += ", states of " + StateOwners(states_) + snapshots + " of " + HumanBytes(states_.bytes) +
            " each";
  }
  return text + ", " + HumanBytes(Bytes(pool));
}

}  // namespace penstock::shard
