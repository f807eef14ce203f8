#include "shard/backend/batch_check.h"

#include <algorithm>
#include <string>

#include "common/status.h"

namespace penstock::shard {
namespace {

// A candidate that is not chosen would stay in the state, and padded rows have none.
absl::Status CheckState(const RaggedSegment& segment, const BackendLimits& limits,
                        const Program& program) {
  if (program.states.empty()) return absl::OkStatus();
  if (segment.state.value() >= limits.max_sequences) {
    return BadValue("segment.state", std::to_string(segment.state.value()),
                    "below " + std::to_string(limits.max_sequences));
  }
  if (segment.drafts >= segment.query_count) {
    return BadValue("segment.drafts", std::to_string(segment.drafts),
                    "below the rows of the segment, " + std::to_string(segment.query_count));
  }
  if (!segment.candidates && !segment.row.has_value()) return absl::OkStatus();
  return BadValue("segment.candidates or segment.row", "set", "not set: the model has states");
}

// The entries that the layers of a group read.
absl::Status CheckTable(const RaggedSegment& segment, std::uint64_t end, std::uint32_t group,
                        const Program& program, const CacheBlocks& cache) {
  const std::span<const BlockId> table = segment.Table(group);
  const std::string field = group == 0 ? "segment.blocks" : "segment.window_blocks";
  const std::uint64_t needed = (end + cache.block_size - 1) / cache.block_size;
  if (table.size() < needed) {
    return BadValue(field, std::to_string(table.size()) + " entries",
                    "at least " + std::to_string(needed));
  }
  // Similarities reads the whole context of candidates, in group 0.
  const bool all = segment.candidates && group == 0;
  const std::uint64_t first =
      all ? 0 : FirstVisible(group == 0 ? 0 : program.kv_window, segment.context_length);
  for (std::uint64_t i = first / cache.block_size; i < needed; ++i) {
    if (table[i].value() >= cache.blocks[group]) {
      return BadValue(field + "[" + std::to_string(i) + "]", std::to_string(table[i].value()),
                      "below the cache's " + std::to_string(cache.blocks[group]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSegment(const RaggedSegment& segment, std::uint32_t expected_start,
                          const BackendLimits& limits, const Program& program,
                          const CacheBlocks& cache) {
  if (segment.query_start != expected_start || segment.query_count == 0) {
    return BadValue("segment.query_start", std::to_string(segment.query_start),
                    "where the segment before it ends, " + std::to_string(expected_start));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckState(segment, limits, program));
  const std::uint32_t positions = segment.candidates ? 1 : segment.query_count;
  const std::uint64_t end = std::uint64_t{segment.context_length} + positions;
  if (end > limits.max_sequence_length) {
    return BadValue("segment length", std::to_string(end),
                    "at most " + std::to_string(limits.max_sequence_length));
  }
  if (segment.row.has_value()) return absl::OkStatus();  // the backend knows its width
  for (std::uint32_t group = 0; group < program.KvGroups(); ++group) {
    PENSTOCK_RETURN_IF_ERROR(CheckTable(segment, end, group, program, cache));
  }
  return absl::OkStatus();
}

absl::Status CheckDrafts(const RaggedBatch& batch, const BackendLimits& limits) {
  std::uint64_t drafts = 0;
  for (const RaggedSegment& segment : batch.segments) drafts += segment.drafts;
  if (drafts <= limits.max_draft_rows) return absl::OkStatus();
  return BadValue("draft rows", std::to_string(drafts),
                  "at most " + std::to_string(limits.max_draft_rows));
}

// Each candidate segment has one logit row, its first. All together have at most
// max_candidate_rows rows.
absl::Status CheckCandidates(const RaggedBatch& batch, const BackendLimits& limits) {
  std::uint64_t rows = 0;
  auto next = batch.logit_rows.begin();
  for (const RaggedSegment& segment : batch.segments) {
    const std::uint32_t end = segment.query_start + segment.query_count;
    const auto first = next;
    while (next != batch.logit_rows.end() && *next < end) ++next;
    if (!segment.candidates) continue;
    rows += segment.query_count;
    if (segment.context_length == 0 || next - first != 1 || *first != segment.query_start) {
      return BadValue("segment.candidates", "without a context or its one logit row",
                      "a segment with both, the logit row being its first");
    }
  }
  if (rows <= limits.max_candidate_rows) return absl::OkStatus();
  return BadValue("candidate rows", std::to_string(rows),
                  "at most " + std::to_string(limits.max_candidate_rows));
}

}  // namespace

absl::Status CheckCopies(std::span<const BlockCopy> copies, std::uint32_t groups,
                         const KvBlocks& blocks) {
  for (const BlockCopy& copy : copies) {
    if (copy.kv_group >= groups) {
      return BadValue("block copy.kv_group", std::to_string(copy.kv_group),
                      "below the model's " + std::to_string(groups));
    }
    const std::uint32_t largest = std::max(copy.src.value(), copy.dst.value());
    if (largest < blocks[copy.kv_group]) continue;
    return BadValue("block copy", std::to_string(largest),
                    "below the cache's " + std::to_string(blocks[copy.kv_group]));
  }
  return absl::OkStatus();
}

absl::Status CheckStateCopies(std::span<const StateCopy> copies, const BackendLimits& limits,
                              std::uint32_t snapshots) {
  for (const StateCopy& copy : copies) {
    if (copy.slot.value() >= limits.max_sequences) {
      return BadValue("state copy", "slot " + std::to_string(copy.slot.value()),
                      "below " + std::to_string(limits.max_sequences));
    }
    if (copy.snapshot.value() >= snapshots) {
      return BadValue("state copy", "snapshot " + std::to_string(copy.snapshot.value()),
                      "below the " + std::to_string(snapshots) + " snapshots");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCells(std::uint32_t cells, const Program& program) {
  if (cells == 0 || program.KvGroups() == 1) return absl::OkStatus();
  return BadValue("cells", std::to_string(cells), "0 for a program with two KV groups");
}

absl::Status CheckCommunicator(const Program& program, const Communicator* communicator) {
  if (program.part.world == 1 || communicator != nullptr) return absl::OkStatus();
  return absl::InternalError("a backend of several ranks needs a communicator");
}

absl::Status CheckLogitRows(std::uint32_t first, std::size_t count, const BackendLimits& limits,
                            std::size_t logit_rows) {
  if (count > 0 && count <= limits.max_logit_rows && first + count <= logit_rows) {
    return absl::OkStatus();
  }
  return BadValue("logit rows", std::to_string(first) + " + " + std::to_string(count),
                  "1 to " + std::to_string(limits.max_logit_rows) + " rows within the batch's " +
                      std::to_string(logit_rows));
}

absl::Status NotCandidates(std::uint32_t segment, std::size_t rows) {
  return absl::InternalError("segment " + std::to_string(segment) +
                             " of the last batch has fewer than " + std::to_string(rows) +
                             " candidates");
}

absl::Status NotAllCandidates(std::size_t choices, std::size_t segments) {
  return absl::InternalError(std::to_string(choices) + " choices for " + std::to_string(segments) +
                             " candidate segments");
}

absl::Status NotDrafts(const DraftsKept& kept) {
  return absl::InternalError("segment " + std::to_string(kept.segment) +
                             " of the last batch has fewer than " + std::to_string(kept.rows) +
                             " drafts");
}

absl::Status CheckBatch(const RaggedBatch& batch, const BackendLimits& limits,
                        const Program& program, const CacheBlocks& cache) {
  if (batch.tokens.empty() || batch.tokens.size() > limits.max_step_tokens) {
    return BadValue("tokens", std::to_string(batch.tokens.size()) + " rows",
                    "1 to " + std::to_string(limits.max_step_tokens));
  }
  for (TokenId token : batch.tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= program.vocabulary) {
      return BadValue("token id", std::to_string(token),
                      "from 0 to " + std::to_string(program.vocabulary - 1));
    }
  }
  std::uint32_t rows = 0;
  for (const RaggedSegment& segment : batch.segments) {
    PENSTOCK_RETURN_IF_ERROR(CheckSegment(segment, rows, limits, program, cache));
    rows += segment.query_count;
  }
  if (rows != batch.tokens.size()) {
    return BadValue("segments", std::to_string(rows) + " rows in all",
                    "as many as tokens, " + std::to_string(batch.tokens.size()));
  }
  std::int64_t before = -1;
  for (std::uint32_t row : batch.logit_rows) {
    if (row <= before || row >= rows) {
      return BadValue("logit_rows", std::to_string(row), "ascending and below the number of rows");
    }
    before = row;
  }
  if (!program.states.empty()) PENSTOCK_RETURN_IF_ERROR(CheckDrafts(batch, limits));
  return CheckCandidates(batch, limits);
}

}  // namespace penstock::shard
