// Drives a Backend as the executor does, but in a few lines: slots with scrambled block tables,
// steps of any mixture of prompts and decodes, greedy choice.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/cpu_backend.h"
#include "shard/model/model.h"
#include "shard/parallel/communicator.h"
#include "shard/parallel/local_communicator.h"

namespace penstock::shard {

enum class Runs { kReference, kCpu };

struct RunnerOptions {
  Runs backend = Runs::kReference;
  std::string folder;
  std::optional<DType> dtype;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t block_size = 16;
  std::uint32_t max_sequence_length = 512;
  std::uint32_t max_step_tokens = 128;
  std::uint32_t cpu_threads = 1;
  std::uint32_t max_logit_rows = 8;
  std::uint32_t sequences = 4;
  // Makes the backend instead, if given.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const Model&, LoadedWeights)> make;
  std::uint32_t max_candidate_rows = 0;
  std::uint32_t max_draft_rows = 0;
  std::uint32_t snapshots = 0;
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;
  std::string weight_format = "auto";
  // KV group 1 has block tables of its own, and no more blocks than all sequences need. Otherwise
  // the tables of group 0 serve all layers.
  bool window_tables = false;
};

// Names the cases of a suite that runs on each backend.
inline void PrintTo(Runs backend, std::ostream* out) {
  *out << (backend == Runs::kCpu ? "cpu" : "reference");
}
inline std::string BackendName(const testing::TestParamInfo<Runs>& info) {
  return testing::PrintToString(info.param);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const RunnerOptions& options,
                                                     const Model& model, LoadedWeights weights);

class ModelRunner {
 public:
  struct Feed {
    int sequence;
    std::vector<TokenId> tokens;
    std::uint32_t drafts = 0;  // of the tokens, the last
    const BackendAdapter* adapter = nullptr;
  };
  static constexpr int kSequences = 4;  // by default

  // Fails the test and gives nothing on an error.
  static std::unique_ptr<ModelRunner> Open(const RunnerOptions& options,
                                           Communicator* communicator = nullptr);

  // One step; the logits of the last row of each feed.
  std::vector<std::vector<float>> Step(const std::vector<Feed>& feeds);

  // The first `rows` drafts of the last step were right. That step had no other sequence.
  void KeepDrafts(const Feed& fed, std::uint32_t rows);

  // Forgets the sequence; its blocks stay as they are.
  void Reset(int sequence) {
    lengths_[sequence] = prompts_[sequence] = 0;
    LeaveWindow(sequence, SIZE_MAX);
    window_tables_[sequence].clear();
  }

  void Save(int sequence, std::uint32_t snapshot);
  // The sequence continues as `other` was when that snapshot of it was saved.
  void Restore(int sequence, std::uint32_t snapshot, int other, std::uint32_t length);

  // `count` greedy tokens after `prompt`, which is computed in pieces of `chunk`.
  std::vector<TokenId> Greedy(int sequence, const std::vector<TokenId>& prompt, std::size_t count,
                              std::size_t chunk = 128);

  // Logits of the last row of `tokens`, fed in pieces of `chunk`. They are the prompt of an empty
  // sequence.
  std::vector<float> Prefill(int sequence, const std::vector<TokenId>& tokens, std::size_t chunk);

  const Model& model() const { return model_; }
  Backend& backend() { return *backend_; }
  Communicator& communicator() { return *communicator_; }
  std::vector<BlockId>& table(int sequence) { return tables_[sequence]; }
  std::uint32_t length(int sequence) const { return lengths_.at(sequence); }

 private:
  // Frees the entries before `end` of the sequence's table in group 1.
  void LeaveWindow(int sequence, std::size_t end);
  // Makes the entries before `end` there.
  void GrowWindow(int sequence, std::size_t end);
  absl::Status AllocateCache(std::uint32_t blocks);

  RunnerOptions options_;
  Model model_;
  std::unique_ptr<Backend> backend_;
  LocalCommunicator local_;
  Communicator* communicator_ = &local_;
  std::map<int, std::vector<BlockId>> tables_;
  std::map<int, std::uint32_t> lengths_;
  std::map<int, std::vector<BlockId>> window_tables_;  // of group 1, with window_tables
  std::vector<BlockId> window_pool_;                   // free; the last one is taken first
  std::map<int, std::uint32_t> prompts_;               // their lengths
};

TokenId Argmax(const std::vector<float>& logits);

float MaxDifference(const std::vector<float>& a, const std::vector<float>& b);

// Runs `body` on every rank of a shared-memory group, each in its own thread.
void OnRanks(const RunnerOptions& options, std::uint32_t world,
             const std::function<void(ModelRunner&)>& body);

// The same with the rank's communicator and options, for bodies that open their own runner.
void OnCommunicators(RunnerOptions options, std::uint32_t world,
                     const std::function<void(Communicator&, RunnerOptions)>& body);

}  // namespace penstock::shard
