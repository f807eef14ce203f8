// Checks the rules of RaggedBatch before a backend computes anything.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "shard/backend/backend.h"
#include "shard/model/program.h"

namespace penstock::shard {

struct CacheBlocks {
  std::uint32_t block_size = 16;
  KvBlocks blocks;
};

// Returns InvalidArgument with the field that breaks a rule.
absl::Status CheckBatch(const RaggedBatch& batch, const BackendLimits& limits,
                        const Program& program, const CacheBlocks& cache);

// The blocks of Backend::CopyBlocks lie in a cache with `groups` KV groups and these blocks.
absl::Status CheckCopies(std::span<const BlockCopy> copies, std::uint32_t groups,
                         const KvBlocks& blocks);

// The error of SetCells for a program with two KV groups.
absl::Status CheckCells(std::uint32_t cells, const Program& program);

// The slots and snapshots of SaveStates and RestoreStates.
absl::Status CheckStateCopies(std::span<const StateCopy> copies, const BackendLimits& limits,
                              std::uint32_t snapshots);

// Errors of Prepare and Logits.
absl::Status CheckCommunicator(const Program& program, const Communicator* communicator);
absl::Status CheckLogitRows(std::uint32_t first, std::size_t count, const BackendLimits& limits,
                            std::size_t logit_rows);

// Errors of Similarities and CommitCandidates.
absl::Status NotCandidates(std::uint32_t segment, std::size_t rows);
absl::Status NotAllCandidates(std::size_t choices, std::size_t segments);

// Error of KeepDrafts.
absl::Status NotDrafts(const DraftsKept& kept);

}  // namespace penstock::shard
