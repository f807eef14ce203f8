#include "tests/unit/shard/backend/model_runner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "common/plan/step_plan.h"
#include "shard/backend/reference/reference_backend.h"
#include "shard/parallel/shm_communicator.h"

namespace penstock::shard {

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const RunnerOptions& options,
                                                     const Model& model, LoadedWeights weights) {
  if (options.make != nullptr) return options.make(model, std::move(weights));
  if (options.backend == Runs::kCpu) {
    CpuOptions cpu{model.program, std::move(weights), model.dtype, options.block_size,
                   options.cpu_threads};
    cpu.quantization = model.quantization;
    cpu.kv_type = model.kv_type;
    cpu.weight_format = options.weight_format;
    return MakeCpuBackend(std::move(cpu));
  }
  ReferenceOptions reference;
  reference.program = model.program;
  reference.weights = std::move(weights);
  reference.dtype = model.dtype;
  reference.block_size = options.block_size;
  reference.cpu_threads = options.cpu_threads;
  return MakeReferenceBackend(std::move(reference));
}

std::unique_ptr<ModelRunner> ModelRunner::Open(const RunnerOptions& options,
                                               Communicator* communicator) {
  auto runner = std::make_unique<ModelRunner>();
  runner->options_ = options;
  auto model = Model::Open({options.folder, options.dtype, Device(), options.rank, options.world,
                            options.quantization, options.kv_type});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return nullptr;
  runner->model_ = std::move(*model);
  auto weights = runner->model_.Load(nullptr);
  EXPECT_TRUE(weights.ok()) << weights.status();
  if (!weights.ok()) return nullptr;
  auto backend = MakeBackend(options, runner->model_, std::move(*weights));
  EXPECT_TRUE(backend.ok()) << backend.status();
  if (!backend.ok()) return nullptr;
  runner->backend_ = std::move(*backend);
  if (communicator != nullptr) runner->communicator_ = communicator;
  BackendLimits limits;
  limits.max_step_tokens = options.max_step_tokens;
  limits.max_sequence_length = options.max_sequence_length;
  limits.max_logit_rows = options.max_logit_rows;
  limits.max_candidate_rows = options.max_candidate_rows;
  limits.max_draft_rows = options.max_draft_rows;
  const absl::Status prepared = runner->backend_->Prepare(limits, communicator);
  EXPECT_TRUE(prepared.ok()) << prepared;

  const std::uint32_t per_sequence =
      (options.max_sequence_length + options.block_size - 1) / options.block_size;
  std::vector<std::uint32_t> ids(per_sequence * options.sequences);
  std::iota(ids.begin(), ids.end(), 0u);
  std::shuffle(ids.begin(), ids.end(), std::mt19937(7));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    runner->tables_[static_cast<int>(i % options.sequences)].push_back(BlockId(ids[i]));
  }
  EXPECT_EQ(runner->backend_->SetSnapshots(options.snapshots), absl::OkStatus());
  const absl::Status cache = runner->AllocateCache(static_cast<std::uint32_t>(ids.size()));
  EXPECT_TRUE(cache.ok()) << cache;
  return runner;
}

absl::Status ModelRunner::AllocateCache(std::uint32_t blocks) {
  options_.window_tables = options_.window_tables && model_.program.KvGroups() > 1;
  if (!options_.window_tables) return backend_->AllocateCache(blocks);
  const std::uint32_t tokens = model_.program.kv_window + options_.max_step_tokens;
  const std::uint32_t each = (tokens + options_.block_size - 1) / options_.block_size + 1;
  for (std::uint32_t i = 0; i < each * options_.sequences; ++i) window_pool_.push_back(BlockId(i));
  std::shuffle(window_pool_.begin(), window_pool_.end(), std::mt19937(8));
  return backend_->AllocateCache({blocks, each * options_.sequences});
}

void ModelRunner::LeaveWindow(int sequence, std::size_t end) {
  std::vector<BlockId>& table = window_tables_[sequence];
  for (std::size_t i = 0; i < std::min(end, table.size()); ++i) {
    const BlockId block = std::exchange(table[i], kNoBlock);
    if (block != kNoBlock) window_pool_.push_back(block);
  }
}

void ModelRunner::GrowWindow(int sequence, std::size_t end) {
  std::vector<BlockId>& table = window_tables_[sequence];
  while (table.size() < end) {
    table.push_back(window_pool_.back());
    window_pool_.pop_back();
  }
}

std::vector<std::vector<float>> ModelRunner::Step(const std::vector<Feed>& feeds) {
  const std::uint32_t size = options_.block_size;
  for (const Feed& feed : feeds) {
    const std::uint32_t window = model_.program.kv_window;
    LeaveWindow(feed.sequence, FirstVisible(window, lengths_[feed.sequence]) / size);
  }
  std::vector<TokenId> tokens;
  std::vector<RaggedSegment> segments;
  std::vector<std::uint32_t> rows;
  for (const Feed& feed : feeds) {
    RaggedSegment segment;
    segment.query_start = static_cast<std::uint32_t>(tokens.size());
    segment.query_count = static_cast<std::uint32_t>(feed.tokens.size());
    segment.context_length = lengths_[feed.sequence];
    segment.blocks = tables_[feed.sequence];
    if (options_.window_tables) {
      const std::size_t end = lengths_[feed.sequence] + feed.tokens.size();
      GrowWindow(feed.sequence, (end + size - 1) / size);
      segment.window_blocks = window_tables_[feed.sequence];
    }
    segment.state = SlotId(static_cast<std::uint32_t>(feed.sequence));
    segment.text_length = segment.prompt_length = prompts_[feed.sequence];
    segment.drafts = feed.drafts;
    segment.adapter = feed.adapter;
    segments.push_back(segment);
    tokens.insert(tokens.end(), feed.tokens.begin(), feed.tokens.end());
    lengths_[feed.sequence] += segment.query_count;
    rows.push_back(static_cast<std::uint32_t>(tokens.size()) - 1);
  }
  const absl::Status status = backend_->Execute({tokens, segments, rows});
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::vector<float>> logits;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    auto view = backend_->Logits(i, 1);
    EXPECT_TRUE(view.ok()) << view.status();
    if (!view.ok()) {
      // A test on several threads must fail without an exception.
      return std::vector(feeds.size(), std::vector<float>(model_.spec.vocabulary));
    }
    const auto* data = static_cast<const float*>(view->data);
    logits.emplace_back(data, data + view->shape[1]);
  }
  return logits;
}

void ModelRunner::KeepDrafts(const Feed& fed, std::uint32_t rows) {
  const DraftsKept kept{0, rows};
  const absl::Status status = backend_->KeepDrafts({&kept, 1});
  EXPECT_TRUE(status.ok()) << status;
  lengths_[fed.sequence] -= fed.drafts - rows;
}

void ModelRunner::Save(int sequence, std::uint32_t snapshot) {
  const StateCopy copy{SlotId(static_cast<std::uint32_t>(sequence)), BlockId(snapshot)};
  EXPECT_EQ(backend_->SaveStates({&copy, 1}), absl::OkStatus());
}

void ModelRunner::Restore(int sequence, std::uint32_t snapshot, int other, std::uint32_t length) {
  const StateCopy copy{SlotId(static_cast<std::uint32_t>(sequence)), BlockId(snapshot)};
  EXPECT_EQ(backend_->RestoreStates({&copy, 1}), absl::OkStatus());
  const std::uint32_t shared = length / options_.block_size;
  std::copy_n(tables_[other].begin(), shared, tables_[sequence].begin());
  lengths_[sequence] = length;
}

std::vector<float> ModelRunner::Prefill(int sequence, const std::vector<TokenId>& tokens,
                                        std::size_t chunk) {
  std::vector<float> logits;
  if (lengths_[sequence] == 0) prompts_[sequence] = static_cast<std::uint32_t>(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); i += chunk) {
    const std::size_t end = std::min(tokens.size(), i + chunk);
    logits = Step({{sequence, {tokens.begin() + i, tokens.begin() + end}}}).at(0);
  }
  return logits;
}

std::vector<TokenId> ModelRunner::Greedy(int sequence, const std::vector<TokenId>& prompt,
                                         std::size_t count, std::size_t chunk) {
  Reset(sequence);
  std::vector<TokenId> ids = {Argmax(Prefill(sequence, prompt, chunk))};
  while (ids.size() < count) ids.push_back(Argmax(Step({{sequence, {ids.back()}}}).at(0)));
  return ids;
}

TokenId Argmax(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

float MaxDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0.0f;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    // Not std::max: a NaN must count.
    const float difference = std::fabs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

void OnCommunicators(RunnerOptions options, std::uint32_t world,
                     const std::function<void(Communicator&, RunnerOptions)>& body) {
  static int count = 0;
  const std::string name =
      "penstock-backend-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  options.world = world;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([=, &body]() mutable {
      options.rank = rank;
      ShmOptions shm;
      shm.name = name;
      shm.rank = static_cast<int>(rank);
      shm.world = static_cast<int>(world);
      auto communicator = JoinShmGroup(shm);
      ASSERT_TRUE(communicator.ok()) << communicator.status();
      body(**communicator, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void OnRanks(const RunnerOptions& options, std::uint32_t world,
             const std::function<void(ModelRunner&)>& body) {
  OnCommunicators(options, world, [&body](Communicator& communicator, const RunnerOptions& mine) {
    auto runner = ModelRunner::Open(mine, &communicator);
    ASSERT_NE(runner, nullptr);
    body(*runner);
  });
}

}  // namespace penstock::shard
