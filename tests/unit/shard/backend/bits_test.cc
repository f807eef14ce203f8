// The output of a request has the same bits with and without other requests. Requests run one by
// one and then under many kinds of load, through the real core, the executor and the cpu backend.
// PENSTOCK_LONG_TESTS=1 uses a larger model, every instruction set and more loads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "tests/unit/shard/backend/core_run.h"
#include "tests/unit/shard/backend/cpu/isa_switch.h"
#include "tests/unit/shard/backend/cpu/planted_gemm.h"
#include "tests/unit/shard/backend/cpu/random_model.h"

namespace penstock::shard {
namespace {

using scheduler::AdmissionMode;
using scheduler::Arrival;

constexpr std::uint32_t kSlots = 24;
constexpr std::uint32_t kStepTokens = 700;
constexpr std::uint32_t kLongest = 640;  // three partitions
constexpr std::uint32_t kBlockSize = 16;
constexpr std::uint32_t kRoomyPool = 40 * kLongest / kBlockSize;
constexpr std::uint32_t kTightPool = kLongest / kBlockSize + 2;
constexpr TokenId kEos = 1;

bool Long() { return std::getenv("PENSTOCK_LONG_TESTS") != nullptr; }

// A small model with grouped queries, heads of 64 and a tied head. The inputs of all GEMMs have
// several groups of integers (kIntegerGroup). That of the head matters most: an error of its GEMM
// shows in the logits, while later rounding to bfloat16 or int8 hides most errors of other GEMMs.
Shape ModelShape() {
  Shape shape{.name = "gqa",
              .hidden = 256,
              .layers = 2,
              .heads = 4,
              .kv_heads = 2,
              .head_dim = 64,
              .intermediate = 256,
              .vocabulary = 300,
              .tied = true};
  if (!Long()) return shape;
  shape.hidden = 576;
  shape.layers = 6;
  shape.heads = 9;
  shape.kv_heads = 3;
  shape.intermediate = 1536;
  shape.vocabulary = 2000;
  return shape;
}

struct Load {
  std::uint32_t chunk = kStepTokens;  // most prompt tokens of a step
  std::uint32_t threads = 1;
  bool prefixes = true;        // prefix cache
  bool tight = false;          // the pool is so small that sequences are preempted
  std::uint32_t together = 8;  // arrivals before a step, at most
  std::uint32_t drafts = 0;    // of each decode, at most
};

// Prompts of a few tokens to more than two partitions. A third of them share a prefix, and a third
// repeat themselves. Tokens are selected in every way but with a grammar.
class Requests {
 public:
  Requests(std::uint32_t count, std::uint32_t vocabulary, std::uint32_t seed)
      : random_(seed), vocabulary_(vocabulary) {
    for (const std::uint32_t length : {33u, 100u, 280u}) beginnings_.push_back(Tokens(length));
    for (std::uint64_t i = 0; i < count; ++i) all_.push_back(Make(RequestId(i)));
  }

  const std::vector<Arrival>& all() const { return all_; }

 private:
  TokenId AnyToken() { return 2 + static_cast<TokenId>(random_() % (vocabulary_ - 2)); }

  std::vector<TokenId> Tokens(std::uint32_t count) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) token = AnyToken();
    return tokens;
  }

  std::uint32_t Length() {
    switch (random_() % 12) {
      case 0:
        return 260 + random_() % 300;
      case 1:
      case 2:
        return 60 + random_() % 100;
      default:
        return 2 + random_() % 50;
    }
  }

  Arrival Make(RequestId id) {
    Arrival arrival;
    arrival.request = id;
    arrival.prompt = Tokens(Length());
    if (id.value() % 3 == 0) {
      const std::vector<TokenId>& beginning = beginnings_[random_() % beginnings_.size()];
      const auto most = std::min<std::size_t>(beginning.size(), arrival.prompt.size());
      std::copy_n(beginning.begin(), most, arrival.prompt.begin());
    } else if (id.value() % 3 == 1) {
      const std::size_t period = 3 + random_() % 9;
      for (std::size_t i = period; i < arrival.prompt.size(); ++i) {
        arrival.prompt[i] = arrival.prompt[i - period];
      }
    }
    arrival.max_new_tokens = 4 + random_() % 28;
    arrival.predicted_tokens = 1;  // wrong, so that optimistic admission regrets it
    arrival.ignore_eos = random_() % 2 == 0;
    arrival.logprobs.kind =
        random_() % 2 == 0 ? LogprobRequest::Kind::kRaw : LogprobRequest::Kind::kProcessed;
    arrival.logprobs.top_n = random_() % 3;
    arrival.logprobs.prompt_logprobs = random_() % 8 == 0;
    Choose(arrival.sampling);
    return arrival;
  }

  void Choose(SamplingParams& sampling) {
    sampling.seed = random_();
    if (random_() % 4 == 0) sampling.repetition_penalty = 1.2f;
    if (random_() % 6 == 0) sampling.frequency_penalty = 0.4f;
    sampling.watermark = random_() % 8 == 0;
    if (random_() % 6 == 0) sampling.bad_words = {Tokens(1), Tokens(2)};
    if (random_() % 2 == 0) return;
    sampling.do_sample = true;
    sampling.temperature = 0.5f + static_cast<float>(random_() % 8) / 8.0f;
    if (random_() % 2 == 0) sampling.top_k = 1 + random_() % 40;
    if (random_() % 2 == 0) sampling.top_p = 0.9f;
    if (random_() % 4 == 0) sampling.typical_p = 0.9f;
    if (random_() % 4 == 0) sampling.top_n_sigma = 1.5f;
  }

  std::mt19937 random_;
  const std::uint32_t vocabulary_;
  std::vector<std::vector<TokenId>> beginnings_;
  std::vector<Arrival> all_;
};

struct Types {
  DType model;
  KvType kv = KvType::kAuto;
  Quantization quantization = Quantization::kNone;
  std::string weight_format = "auto";
};

void PrintTo(const Types& types, std::ostream* out) {
  *out << DTypeName(types.model) << "_kv_" << KvTypeName(types.kv);
  if (types.quantization != Quantization::kNone) {
    *out << "_" << QuantizationName(types.quantization);
  }
  if (types.weight_format != "auto") *out << "_weights_" << types.weight_format;
}

// One model; each run has a new cache and its own threads.
class Server {
 public:
  explicit Server(const Types& types, const cpu::Kernels* kernels = nullptr)
      : spec_(SpecOf(ModelShape())), types_(types), kernels_(kernels) {}

  // One request at a time, whole prompts, one thread, nothing cached.
  Answers Alone(const std::vector<Arrival>& requests) {
    CoreRun::Options options = Base(kRoomyPool);
    options.config.max_batch_size = 1;
    options.config.prefix_caching = false;
    return Run(options, 1, requests, [] { return 1u; });
  }

  Answers Under(const Load& load, const std::vector<Arrival>& requests, std::uint32_t seed) {
    CoreRun::Options options = Base(load.tight ? kTightPool : kRoomyPool);
    options.config.max_batch_prefill_tokens = load.chunk;
    options.config.prefix_caching = load.prefixes;
    if (load.tight) options.config.admission = AdmissionMode::kOptimistic;
    options.config.max_decode_rows = 1 + load.drafts;
    std::mt19937 random(seed);
    const auto arriving = [&] { return random() % 3 == 0 ? random() % (load.together + 1) : 0u; };
    return Run(options, load.threads, requests, arriving);
  }

  const RunCounts& counts() const { return counts_; }

 private:
  CoreRun::Options Base(std::uint32_t blocks) const {
    CoreRun::Options options;
    options.executor.slots = kSlots;
    options.executor.vocabulary = spec_.vocabulary;
    options.executor.eos_token_ids = {kEos};
    options.config.max_step_tokens = kStepTokens;
    options.config.max_waiting_requests = 100'000;
    options.capacity.blocks = blocks;
    options.capacity.block_size = kBlockSize;
    options.capacity.slots = kSlots;
    options.capacity.max_sequence_length = kLongest;
    options.capacity.max_step_tokens = kStepTokens;
    return options;
  }

  Answers Run(const CoreRun::Options& options, std::uint32_t threads,
              const std::vector<Arrival>& requests,
              const std::function<std::uint32_t()>& arriving) {
    BuiltProgram built = ProgramOf(ModelShape());
    LoadedWeights weights = RandomWeights(built.weights, types_.model);
    CpuOptions made{std::move(built.program), std::move(weights), types_.model, kBlockSize,
                    threads};
    made.kernels = kernels_;
    made.kv_type = types_.kv;
    made.quantization = types_.quantization;
    made.weight_format = types_.weight_format;
    auto backend = MakeCpuBackend(std::move(made));
    EXPECT_TRUE(backend.ok()) << backend.status();
    if (!backend.ok()) return {};
    EXPECT_TRUE((*backend)->Prepare({kStepTokens, kLongest, 64}, nullptr).ok());
    EXPECT_TRUE((*backend)->AllocateCache(options.capacity.blocks).ok());
    CoreRun run(options, **backend);
    Answers answers = run.Serve(requests, arriving);
    counts_ = run.counts();
    return answers;
  }

  const ModelSpec spec_;
  const Types types_;
  const cpu::Kernels* const kernels_;
  RunCounts counts_;
};

// The number of requests with another output.
std::size_t Differing(const Answers& a, const Answers& b) {
  std::size_t differing = a.size() == b.size() ? 0 : 1;
  for (const auto& [id, answer] : a) differing += b.contains(id) && b.at(id) == answer ? 0 : 1;
  return differing;
}

class Bits : public testing::TestWithParam<Types> {};

void ExpectSameBits(const Types& types, std::uint32_t count, std::uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Server server(types);
  const Requests requests(count, ModelShape().vocabulary, seed);
  const Answers alone = server.Alone(requests.all());
  ASSERT_EQ(alone.size(), count);

  const Load loads[] = {
      {.chunk = 1, .threads = 1},
      {.chunk = 7, .threads = 2},
      {.chunk = 64, .threads = 2, .together = 1, .drafts = 7},
      {.threads = 1, .prefixes = false, .tight = true, .together = 40},
      {.threads = 2, .tight = true, .together = 40, .drafts = 4},
  };
  RunCounts all;
  for (std::size_t i = 0; i < std::size(loads); ++i) {
    const Answers answers = server.Under(loads[i], requests.all(), seed + i);
    EXPECT_EQ(Differing(alone, answers), 0u) << "of " << count << " requests, load " << i;
    all.chunked += server.counts().chunked;
    all.preempted += server.counts().preempted;
    all.cached_tokens += server.counts().cached_tokens;
    all.longer_gains += server.counts().longer_gains;
    all.most_rows = std::max(all.most_rows, server.counts().most_rows);
  }
  // The loads were what they are meant to be.
  EXPECT_GT(all.chunked, count / 2);
  EXPECT_GT(all.preempted, 2u);
  EXPECT_GT(all.cached_tokens, 10 * count);
  EXPECT_GT(all.most_rows, 300u);
  EXPECT_GT(all.longer_gains, count / 4);
}

TEST_P(Bits, RequestsHaveTheSameBitsAloneAndUnderLoad) {
  ExpectSameBits(GetParam(), 200, std::random_device()());
}

// Takes hours of one core. There is a test for each pair, so that several processes can share them
// (GTEST_TOTAL_SHARDS).
class BitsOnEveryInstructionSet : public testing::TestWithParam<std::tuple<std::string, Types>> {};

TEST_P(BitsOnEveryInstructionSet, UnderManyLoads) {
  if (!Long()) GTEST_SKIP() << "PENSTOCK_LONG_TESTS=1 runs it";
  const auto& [name, types] = GetParam();
  const IsaSwitch use(name);
  if (const auto isa = cpu::ChooseIsa(); !isa.ok()) GTEST_SKIP() << isa.status().message();
  for (int i = 0; i < 4; ++i) ExpectSameBits(types, 200, std::random_device()());
}

// A GEMM whose order over K depends on the number of rows, as a planted bug.
const cpu::Kernels* g_planted_into = nullptr;

template <cpu::FormatId kId>
void PlantIn(cpu::Kernels& planted) {
  if (planted.formats[kId].gemm == nullptr) return;
  planted.formats[kId].gemm = [](const cpu::GemmArgs& args) {
    cpu::SplitKOfOneRow(*g_planted_into, cpu::FormatOf(kId), args);
  };
}

TEST_P(Bits, FindsAGemmWhoseOrderDependsOnTheNumberOfRows) {
  const auto isa = cpu::ChooseIsa();
  ASSERT_TRUE(isa.ok()) << isa.status();
  g_planted_into = cpu::FindKernels(*isa, GetParam().model);
  cpu::Kernels planted = *g_planted_into;
  PlantIn<cpu::FormatId::kPlain>(planted);
  PlantIn<cpu::FormatId::kCompressed>(planted);
  PlantIn<cpu::FormatId::kInt4>(planted);
  PlantIn<cpu::FormatId::kInt8>(planted);
  PlantIn<cpu::FormatId::kInt16>(planted);
  Server server(GetParam(), &planted);
  const Requests requests(20, ModelShape().vocabulary, 1);
  const Answers alone = server.Alone(requests.all());
  const Answers loaded = server.Under({.chunk = 64, .together = 20}, requests.all(), 1);
  EXPECT_GT(Differing(alone, loaded), 0u);
  EXPECT_EQ(Differing(alone, server.Alone(requests.all())), 0u) << "only the load shows it";
}

std::vector<std::string> IsaNames() { return {std::begin(kIsaNames), std::end(kIsaNames)}; }

const Types kTypes[] = {
    {DType::kFloat32},
    {DType::kBFloat16},
    {.model = DType::kBFloat16, .kv = KvType::kInt8, .weight_format = "plain"},
    {.model = DType::kBFloat16, .quantization = Quantization::kInt8},
    {.model = DType::kBFloat16, .quantization = Quantization::kInt4},
    {.model = DType::kBFloat16, .weight_format = "plain"},
};

INSTANTIATE_TEST_SUITE_P(OfTypes, Bits, testing::ValuesIn(kTypes),
                         [](const auto& info) { return testing::PrintToString(info.param); });

INSTANTIATE_TEST_SUITE_P(OfTypes, BitsOnEveryInstructionSet,
                         testing::Combine(testing::ValuesIn(IsaNames()), testing::ValuesIn(kTypes)),
                         [](const auto& info) {
                           std::string isa = std::get<0>(info.param);
                           std::replace(isa.begin(), isa.end(), '-', '_');
                           return isa + "_" + testing::PrintToString(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace penstock::shard
