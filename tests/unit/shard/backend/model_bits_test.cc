// The output of a request has the same bits alone and under load, for every model type and variant
// of the goldens: in a batch with others, after a prefix hit, preempted and resumed, with prefill
// chunks of any size, after verified drafts, beside a contrastive search, on any number of threads,
// and in padded KV rows. Two ranks have the same bits alone and under load too, and the token ids
// of one rank. The requests run through the real core, the executor and the cpu backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "shard/backend/cpu/cpu_backend.h"
#include "shard/model/features.h"
#include "shard/model/kv_groups.h"
#include "shard/model/model.h"
#include "shard/weights/weight_source.h"
#include "tests/unit/shard/backend/core_run.h"
#include "tests/unit/shard/backend/model_checkpoints.h"
#include "tests/unit/shard/backend/model_runner.h"

namespace penstock::shard {
namespace {

using scheduler::AdmissionMode;
using scheduler::Arrival;

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kStepTokens = 160;
constexpr std::uint32_t kLongest = 128;  // longer than every window and chunk of the checkpoints
constexpr std::uint32_t kBlockSize = 16;
constexpr std::uint32_t kRoomyPool = kSlots * kLongest / kBlockSize;
constexpr std::uint32_t kCells = 8 * kLongest;
constexpr std::uint32_t kCandidates = 4;
constexpr std::uint32_t kSnapshots = 6;
constexpr std::uint32_t kRequests = 8;

struct Load {
  const char* name;
  std::uint32_t chunk = kStepTokens;  // most prompt tokens of a step
  std::uint32_t threads = 1;
  bool tight = false;          // the pool is so small that sequences are preempted
  std::uint32_t together = 6;  // arrivals before a step, at most
  std::uint32_t drafts = 0;    // of each decode, at most
  bool padded = false;         // KV layout
};

constexpr Load kLoads[] = {
    {.name = "chunks of 1", .chunk = 1},
    {.name = "chunks of 3, drafts", .chunk = 3, .drafts = 3},
    {.name = "chunks of 7, preempted", .chunk = 7, .tight = true, .together = kRequests},
    {.name = "chunks of 16, 3 threads", .chunk = 16, .threads = 3},
    {.name = "whole, preempted, drafts", .tight = true, .together = kRequests, .drafts = 3},
    {.name = "whole, padded", .padded = true},
};
constexpr Load kLoadOfTwoRanks = {
    .name = "chunks of 7, preempted, 2 ranks", .chunk = 7, .tight = true, .together = kRequests};

// Prompts of a few tokens to most of the context. A third of them share a prefix, and a third
// repeat themselves, so that drafts are right. Greedy, sampled, and a contrastive search.
std::vector<Arrival> Requests(std::uint32_t vocabulary, std::uint32_t longest, bool contrastive) {
  std::mt19937 random(11);
  const auto tokens = [&](std::uint32_t count) {
    std::vector<TokenId> made(count);
    for (TokenId& token : made) token = 2 + static_cast<TokenId>(random() % (vocabulary - 2));
    return made;
  };
  const std::vector<TokenId> beginning = tokens(longest / 2);
  std::vector<Arrival> requests;
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    Arrival arrival;
    arrival.request = RequestId(i);
    arrival.max_new_tokens = longest / 8 + random() % (longest / 4);
    const std::uint32_t most = longest - arrival.max_new_tokens;
    arrival.prompt = tokens(i % 4 == 3 ? 2 + random() % 8 : most / 4 + random() % (most * 3 / 4));
    if (i % 3 == 0) {
      std::copy_n(beginning.begin(), std::min(beginning.size(), arrival.prompt.size()),
                  arrival.prompt.begin());
    } else if (i % 3 == 1) {
      for (std::size_t t = 5; t < arrival.prompt.size(); ++t) {
        arrival.prompt[t] = arrival.prompt[t - 5];
      }
    }
    arrival.predicted_tokens = 1;  // wrong, so that optimistic admission regrets it
    arrival.ignore_eos = i % 8 > 0;
    arrival.logprobs.kind = LogprobRequest::Kind::kRaw;
    arrival.logprobs.top_n = 2;
    arrival.logprobs.prompt_logprobs = i % 7 == 2;
    arrival.sampling.seed = i;
    arrival.sampling.do_sample = i % 5 == 4;
    if (contrastive && i % 5 == 3) {
      arrival.sampling.penalty_alpha = 0.6f;
      arrival.sampling.top_k = 4;
    }
    requests.push_back(std::move(arrival));
  }
  return requests;
}

// The plans that rank 0 gives to the other rank.
class PlanQueue {
 public:
  void Push(const StepPlan& plan) {
    const std::lock_guard lock(mutex_);
    plans_.push_back(plan);
    changed_.notify_all();
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  // Empty after Close.
  std::optional<StepPlan> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !plans_.empty(); });
    if (plans_.empty()) return std::nullopt;
    StepPlan plan = std::move(plans_.front());
    plans_.pop_front();
    return plan;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StepPlan> plans_;
  bool closed_ = false;
};

struct Types {
  const char* name;
  DType dtype = DType::kFloat32;
  Quantization quantization = Quantization::kNone;
  KvType kv = KvType::kAuto;
};

// Each run has a new cache and its own threads.
class Server {
 public:
  Server(const std::string& name, const Types& types) : name_(name), types_(types) {
    auto model = Open(0, 1);
    if (model.ok()) {
      model_ = *std::move(model);
    } else {
      EXPECT_NE(TodoOf(name), "") << model.status();
    }
  }

  // Null if the variant is not served yet.
  const Model* model() const { return model_.has_value() ? &*model_ : nullptr; }
  const RunCounts& counts() const { return counts_; }

  // The exceptions. docs/models.md has the same.
  bool Has(Feature feature) const { return WhyNot(feature, model_->program).empty(); }
  // No text of the checkpoint may be longer.
  std::uint32_t Longest() const { return std::min(kLongest, model_->spec.max_position); }
  std::vector<Arrival> Requests() const {
    return shard::Requests(model_->spec.vocabulary, Longest(), Has(Feature::kContrastiveSearch));
  }

  // One request at a time, whole prompts, one thread, nothing cached.
  Answers Alone() {
    CoreRun::Options options = Base({});
    options.config.max_batch_size = 1;
    options.config.prefix_caching = false;
    return Run(options, {}, *model_, nullptr, [] { return 1u; });
  }

  Answers Under(const Load& load) {
    return Run(OptionsOf(load), load, *model_, nullptr, Some(load));
  }

  // The same on the ranks of a group; these are the answers of rank 0.
  Answers AloneOnTwoRanks() {
    CoreRun::Options options = Base({});
    options.config.max_batch_size = 1;
    options.config.prefix_caching = false;
    return OnTwoRanks(options, {}, [] { return 1u; });
  }
  Answers UnderOnTwoRanks(const Load& load) {
    return OnTwoRanks(OptionsOf(load), load, Some(load));
  }

 private:
  using Arriving = std::function<std::uint32_t()>;

  absl::StatusOr<Model> Open(std::uint32_t rank, std::uint32_t world) const {
    return Model::Open({CheckpointFolder() + "/" + name_, types_.dtype, Device(), rank, world,
                        types_.quantization, types_.kv});
  }

  static KvBlocks BlocksOf(const CoreRun::Options& options) {
    return {options.capacity.blocks, options.capacity.window_blocks};
  }

  static Arriving Some(const Load& load) {
    return [random = std::mt19937(3), most = load.together]() mutable {
      return random() % 3 == 0 ? random() % (most + 1) : 0u;
    };
  }

  CoreRun::Options Base(const Load& load) const {
    CoreRun::Options options;
    options.executor.kv_groups = load.padded ? 1 : model_->program.KvGroups();
    options.executor.slots = kSlots;
    options.executor.vocabulary = model_->spec.vocabulary;
    options.executor.eos_token_ids = model_->spec.eos_token_ids;
    options.config.max_step_tokens = kStepTokens;
    options.capacity.blocks = load.tight ? Longest() / kBlockSize + 1 : kRoomyPool;
    options.capacity.block_size = kBlockSize;
    options.capacity.slots = kSlots;
    options.capacity.max_sequence_length = Longest();
    options.capacity.max_step_tokens = kStepTokens;
    const Program::Lengths lengths = model_->program.TextLengths();
    options.capacity.length_rule = lengths.rule;
    options.capacity.original_length = lengths.original;
    options.capacity.snapshots = model_->program.states.empty() ? 0 : kSnapshots;
    if (!load.padded) AddWindow(options);
    options.capacity.max_candidates = Has(Feature::kContrastiveSearch) ? kCandidates : 0;
    return options;
  }

  // As many blocks as the windows of all sequences need, or with a tight pool those of one.
  void AddWindow(CoreRun::Options& options) const {
    GroupCapacity& capacity = options.capacity;
    capacity.window = model_->program.kv_window;
    if (capacity.window == 0) return;
    options.executor.window_tables = true;
    const std::uint32_t each = (capacity.window + kStepTokens + kBlockSize - 1) / kBlockSize + 1;
    capacity.window_blocks = std::min(capacity.blocks, kSlots * each);
  }

  CoreRun::Options OptionsOf(const Load& load) const {
    CoreRun::Options options = Base(load);
    options.config.max_batch_prefill_tokens = load.chunk;
    options.config.prefix_caching = Has(Feature::kPrefixCache);
    if (load.tight) options.config.admission = AdmissionMode::kOptimistic;
    options.config.max_decode_rows = 1 + (Has(Feature::kSpeculation) ? load.drafts : 0);
    if (load.padded) {
      options.config.split = scheduler::SplitObjective::kSparsity;
      options.config.max_sparsity_ppm = 20'000;
      options.capacity.padded_attention = true;
      options.capacity.cells = kCells;
    }
    return options;
  }

  BackendLimits Limits() const {
    BackendLimits limits;
    limits.max_step_tokens = kStepTokens;
    limits.max_sequence_length = Longest();
    limits.max_candidate_rows = Has(Feature::kContrastiveSearch) ? kSlots * kCandidates : 0;
    limits.max_sequences = kSlots;
    limits.max_draft_rows = kVerifiedRows - 1;
    return limits;
  }

  std::unique_ptr<Backend> Make(const Model& model, const Load& load, const KvBlocks& blocks,
                                Communicator* communicator) const {
    auto weights = model.Load(nullptr);
    EXPECT_TRUE(weights.ok()) << weights.status();
    if (!weights.ok()) return nullptr;
    CpuOptions made{model.program, *std::move(weights), model.dtype, kBlockSize, load.threads};
    if (load.padded) JoinKvGroups(made.program);
    made.kv_type = model.kv_type;
    made.quantization = model.quantization;
    // int4 keeps integers of the files.
    const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
    if (model.quantization == Quantization::kInt4) made.source = &source;
    auto backend = MakeCpuBackend(std::move(made));
    EXPECT_TRUE(backend.ok()) << backend.status();
    if (!backend.ok()) return nullptr;
    EXPECT_TRUE((*backend)->Prepare(Limits(), communicator).ok());
    EXPECT_TRUE((*backend)->SetCells(load.padded ? kCells : 0, kSlots).ok());
    EXPECT_TRUE((*backend)->SetSnapshots(model.program.states.empty() ? 0 : kSnapshots).ok());
    EXPECT_TRUE((*backend)->AllocateCache(blocks).ok());
    return *std::move(backend);
  }

  Answers Run(const CoreRun::Options& options, const Load& load, const Model& model,
              Communicator* communicator, const Arriving& arriving) {
    const auto backend = Make(model, load, BlocksOf(options), communicator);
    if (backend == nullptr) return {};
    CoreRun run(options, *backend);
    Answers answers = run.Serve(Requests(), arriving);
    counts_ = run.counts();
    return answers;
  }

  Answers OnTwoRanks(const CoreRun::Options& options, const Load& load, const Arriving& arriving) {
    PlanQueue plans;
    Answers answers;
    OnCommunicators({}, 2, [&](Communicator& communicator, const RunnerOptions& mine) {
      const auto model = Open(mine.rank, 2);
      ASSERT_TRUE(model.ok()) << model.status();
      if (mine.rank > 0) return Follow(options, load, *model, communicator, plans);
      CoreRun::Options first = options;
      first.communicator = &communicator;
      first.send_plan = [&plans](const StepPlan& plan) { plans.Push(plan); };
      answers = Run(first, load, *model, &communicator, arriving);
      plans.Close();
    });
    return answers;
  }

  void Follow(const CoreRun::Options& options, const Load& load, const Model& model,
              Communicator& communicator, PlanQueue& plans) const {
    const auto backend = Make(model, load, BlocksOf(options), &communicator);
    ASSERT_NE(backend, nullptr);
    ModelExecutor executor(options.executor, *backend, communicator);
    while (const std::optional<StepPlan> plan = plans.Pop()) {
      const auto result = executor.Execute(*plan);
      ASSERT_TRUE(result.ok()) << result.status();
    }
  }

  const std::string name_;
  const Types types_;
  std::optional<Model> model_;
  RunCounts counts_;
};

// The requests whose answers differ.
std::vector<std::uint64_t> Differing(const Answers& a, const Answers& b) {
  std::vector<std::uint64_t> differing;
  for (const auto& [id, answer] : a) {
    if (!b.contains(id) || b.at(id) != answer) differing.push_back(id);
  }
  return differing;
}

// The checkpoint, and what the backend computes in.
struct Case {
  std::string name;
  Types types;
  bool first = false;  // variant of its type
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name << " " << test.types.name; }

// Variants whose integers of 4 bits int4 keeps as they are in the files.
bool IsKept(const std::string& name) { return name.ends_with("_kept"); }

// All variants in float32, and the first of each type also in bfloat16, int8 and int4.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::string type;
  for (const std::string& name : GoldenNames()) {
    const std::string previous = std::exchange(type, name.substr(0, name.find('-')));
    const bool first = type != previous;
    cases.push_back({name, {"float32"}, first});
    if (IsKept(name)) cases.push_back({name, {"int4_kept", DType::kFloat32, Quantization::kInt4}});
    if (!first) continue;
    cases.push_back({name, {"bfloat16", DType::kBFloat16}, first});
    cases.push_back({name, {"int8", DType::kBFloat16, Quantization::kInt8, KvType::kInt8}, first});
    cases.push_back({name, {"int4", DType::kBFloat16, Quantization::kInt4}, first});
  }
  return cases;
}

class ModelBits : public testing::TestWithParam<Case> {};

// What happened in some runs.
struct Happened {
  std::uint32_t chunked = 0, preempted = 0, drafted = 0, most_rows = 0;
  std::uint64_t cached_tokens = 0;
  void Add(const RunCounts& counts) {
    chunked += counts.chunked;
    preempted += counts.preempted;
    drafted += counts.drafted;
    most_rows = std::max(most_rows, counts.most_rows);
    cached_tokens += counts.cached_tokens;
  }
};

TEST_P(ModelBits, AreTheSameAloneAndUnderLoad) {
  Server server(GetParam().name, GetParam().types);
  if (server.model() == nullptr) GTEST_SKIP() << "not served yet";
  const Answers alone = server.Alone();
  ASSERT_EQ(alone.size(), kRequests);
  Happened happened;
  for (const Load& load : kLoads) {
    if (load.padded && !server.Has(Feature::kPaddedLayout)) continue;
    EXPECT_EQ(Differing(alone, server.Under(load)), std::vector<std::uint64_t>()) << load.name;
    happened.Add(server.counts());
  }
  // The loads were what they are meant to be.
  EXPECT_GT(happened.chunked, kRequests);
  EXPECT_GT(happened.preempted, 0u);
  EXPECT_GT(happened.most_rows, 60u);
  EXPECT_EQ(happened.cached_tokens > 0, server.Has(Feature::kPrefixCache));
  EXPECT_EQ(happened.drafted > 0, server.Has(Feature::kSpeculation));
}

// With one rank the best two tokens of a step may be this near, so that two ranks choose the other.
constexpr float kCloseCall = 4e-3f;
constexpr std::size_t kLogprobs = 3;  // of a token: its own, and those of the best two

// Up to the first close call.
void ExpectTheSameIds(const Answer& one, const Answer& two) {
  for (std::size_t i = 0; i < std::min(one.ids.size(), two.ids.size()); ++i) {
    if (one.ids[i] == two.ids[i]) continue;
    const auto logprob = [&](std::size_t rank) {
      return std::bit_cast<float>(one.logprobs.at(kLogprobs * i + rank));
    };
    EXPECT_LT(logprob(1) - logprob(2), kCloseCall) << "token " << i;
    return;
  }
  EXPECT_EQ(one.ids.size(), two.ids.size());
}

TEST_P(ModelBits, OfTwoRanksAreTheSameAloneAndUnderLoad) {
  const auto& [name, types, first] = GetParam();
  if (!first) GTEST_SKIP() << "the first variant of each type shows it";
  Server server(name, types);
  if (server.model() == nullptr) GTEST_SKIP() << "not served yet";
  const Answers two = server.AloneOnTwoRanks();
  ASSERT_EQ(two.size(), kRequests);
  const Answers loaded = server.UnderOnTwoRanks(kLoadOfTwoRanks);
  EXPECT_EQ(Differing(two, loaded), std::vector<std::uint64_t>());
  EXPECT_GT(server.counts().preempted, 0u);
  if (types.dtype != DType::kFloat32) return;  // the ranks round their sums to bfloat16
  const Answers one = server.Alone();
  for (const Arrival& arrival : server.Requests()) {
    SCOPED_TRACE(arrival.request.value());
    const std::uint64_t id = arrival.request.value();
    if (!arrival.sampling.do_sample) ExpectTheSameIds(one.at(id), two.at(id));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelBits, testing::ValuesIn(Cases()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + info.param.types.name;
});

}  // namespace
}  // namespace penstock::shard
