// Drives a shard's engine in this process with plans as a router sends them, and measures it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "shard/executor/model_rank.h"

namespace penstock::shard {

class EngineDriver {
 public:
  static constexpr std::uint32_t kMaxRows = 32;
  static constexpr std::uint32_t kMaxSteps = 240;  // of one Decode

  // Room for `pool_tokens` positions of all sequences, `max_length` of one.
  static absl::StatusOr<std::unique_ptr<EngineDriver>> Open(ModelRankOptions options,
                                                            std::uint32_t pool_tokens,
                                                            std::uint32_t max_length);

  // Seconds of each step of `rows` greedy sequences that hold `context` positions at first. Runs as
  // many steps as fit `seconds`, at least five. The sequences' K and V are copies of one prompt's,
  // each in its own blocks.
  absl::StatusOr<std::vector<double>> Decode(std::uint32_t rows, std::uint32_t context,
                                             double seconds);

  // Seconds of a whole prompt of `tokens` in one step, with its first token. Runs as often as fits
  // `seconds`, at least twice.
  absl::StatusOr<std::vector<double>> Prefill(std::uint32_t tokens, double seconds);

  v1::DescribeResponse Facts() const { return engine_.Facts(); }
  double load_seconds() const { return load_seconds_; }

 private:
  EngineDriver(ModelRankOptions options, std::uint32_t pool_tokens, std::uint32_t max_length);

  absl::Status Prepare();
  // Computes the source's prompt up to `length`.
  absl::Status GrowSource(std::uint32_t length);
  SequenceStart StartOf(std::uint32_t slot, std::uint32_t length) const;
  BlockId BlockOf(std::uint32_t slot, std::uint32_t index) const;
  void AppendBlocks(std::uint32_t slot, std::uint32_t count, StepPlan& plan) const;
  std::uint32_t BlocksFor(std::uint32_t tokens) const;
  absl::StatusOr<double> Step(const StepPlan& plan);

  const std::uint32_t block_size_;
  const std::uint32_t pool_tokens_;
  const std::uint32_t max_length_;
  ModelRank engine_;
  double load_seconds_ = 0;
  std::uint32_t blocks_per_row_ = 0;  // in the present Decode
  std::uint32_t source_length_ = 0;
  std::vector<TokenId> prompt_;
};

}  // namespace penstock::shard
