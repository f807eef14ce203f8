// A backend with simple results: the most probable token after token t is t + 1 (logit 4, all
// others 0). It records every batch.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/status.h"
#include "shard/backend/backend.h"

namespace penstock::shard {

class FakeBackend : public Backend {
 public:
  struct Recorded {
    std::vector<TokenId> tokens;
    std::vector<RaggedSegment> segments;  // without their block spans
    std::vector<std::vector<BlockId>> blocks;
    std::vector<std::vector<BlockId>> window_blocks;
    std::vector<std::uint32_t> logit_rows;
  };

  explicit FakeBackend(std::uint32_t vocabulary) : vocabulary_(vocabulary) {}

  std::string Name() const override { return "fake"; }
  absl::Status Prepare(const BackendLimits&, Communicator*) override { return absl::OkStatus(); }
  bool TakesMemoryInSteps() const override { return takes_memory_in_steps; }
  absl::Status AllocateCache(const KvBlocks& blocks) override {
    cache_blocks = blocks[0];
    window_blocks = blocks[1];
    return absl::OkStatus();
  }
  absl::Status CopyBlocks(std::span<const BlockCopy> copies) override {
    for (const BlockCopy& copy : copies) {
      events.push_back((copy.kv_group == 0 ? "copy " : "copy in group 1 ") +
                       std::to_string(copy.src.value()) + " " + std::to_string(copy.dst.value()));
    }
    return absl::OkStatus();
  }
  absl::Status SetCells(std::uint32_t count, std::uint32_t) override {
    cells = count;
    return absl::OkStatus();
  }
  absl::StatusOr<CellsArranged> ArrangeCells(std::span<const CellPart> parts) override {
    CellsArranged arranged;
    for (const CellPart& part : parts) arranged.allocated += part.rows.size() * part.width;
    if (arranged.allocated > cells) return absl::InvalidArgumentError("too few cells");
    if (!parts.empty()) most_rows = std::max(most_rows, parts.front().rows.size());
    return arranged;
  }
  absl::Status Execute(const RaggedBatch& batch) override {
    events.push_back("execute");
    if (!execute_status.ok()) return execute_status;
    if (on_execute) on_execute(batch);
    Recorded& one = batches.emplace_back();
    one.tokens.assign(batch.tokens.begin(), batch.tokens.end());
    one.segments.assign(batch.segments.begin(), batch.segments.end());
    for (RaggedSegment& segment : one.segments) {
      one.blocks.emplace_back(segment.blocks.begin(), segment.blocks.end());
      one.window_blocks.emplace_back(segment.window_blocks.begin(), segment.window_blocks.end());
      segment.blocks = segment.window_blocks = {};
    }
    one.logit_rows.assign(batch.logit_rows.begin(), batch.logit_rows.end());
    return absl::OkStatus();
  }
  absl::Status Similarities(std::uint32_t segment, std::span<float> out) override {
    events.push_back("similarities");
    const RaggedSegment& ragged = batches.back().segments[segment];
    for (std::size_t i = 0; i < out.size(); ++i) {
      const TokenId token = batches.back().tokens[ragged.query_start + i];
      out[i] = similarity_of ? similarity_of(token) : 0.0f;
    }
    return absl::OkStatus();
  }
  absl::Status CommitCandidates(std::span<const CandidateChoice> choices) override {
    events.push_back("commit");
    Recorded& batch = batches.back();
    for (const CandidateChoice& choice : choices) {
      const std::uint32_t first = batch.segments[choice.segment].query_start;
      for (std::uint32_t& row : batch.logit_rows) {
        if (row == first) row = first + choice.row;
      }
    }
    return absl::OkStatus();
  }
  absl::Status SaveStates(std::span<const StateCopy> copies) override {
    return NoteStates("save", copies);
  }
  absl::Status RestoreStates(std::span<const StateCopy> copies) override {
    return NoteStates("restore", copies);
  }
  absl::Status KeepDrafts(std::span<const DraftsKept> kept) override {
    for (const DraftsKept& one : kept) {
      events.push_back("keep " + std::to_string(one.segment) + " " + std::to_string(one.rows));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) override {
    logit_calls.push_back(count);
    rows_.assign(std::size_t{count} * vocabulary_, 0.0f);
    for (std::uint32_t i = 0; i < count; ++i) {
      const TokenId token = batches.back().tokens[batches.back().logit_rows[first + i]];
      const auto next = static_cast<std::uint32_t>(token + 1) % vocabulary_;
      float* row = rows_.data() + std::size_t{i} * vocabulary_;
      row[next] = 4.0f;
      if (token == nan_token) row[0] = std::numeric_limits<float>::quiet_NaN();
    }
    return TensorView::Matrix(rows_.data(), count, vocabulary_, DType::kFloat32);
  }
  std::uint32_t OwnThreads() const override { return threads; }
  // Runs each item on a new thread, the last item first.
  void ForEach(std::uint32_t items, const Work& work) override {
    items_of_host.push_back(items);
    for (std::uint32_t item = items; item-- > 0;) {
      std::thread([&] { work(item, item % threads); }).join();
    }
  }
  std::uint64_t MemoryBytes() const override { return 77; }

  std::vector<Recorded> batches;
  std::vector<std::string> events;
  std::vector<std::uint32_t> logit_calls;
  std::uint32_t threads = 1;
  std::vector<std::uint32_t> items_of_host;  // of each ForEach
  std::uint32_t cache_blocks = 0;
  std::uint32_t cells = 0;
  std::size_t most_rows = 0;        // of a padded sub-batch
  std::uint32_t window_blocks = 0;  // of KV group 1
  bool takes_memory_in_steps = true;
  absl::Status execute_status;
  std::function<void(const RaggedBatch&)> on_execute;
  std::function<float(TokenId)> similarity_of;  // of a candidate; none: 0
  TokenId nan_token = -1;                       // rows of this token hold a NaN

 private:
  absl::Status NoteStates(const std::string& what, std::span<const StateCopy> copies) {
    for (const StateCopy& copy : copies) {
      events.push_back(what + " slot " + std::to_string(copy.slot.value()) + " snapshot " +
                       std::to_string(copy.snapshot.value()));
    }
    return absl::OkStatus();
  }

  const std::uint32_t vocabulary_;
  std::vector<float> rows_;
};

}  // namespace penstock::shard
