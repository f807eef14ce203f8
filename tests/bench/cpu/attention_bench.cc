// Attention of the CPU backend alone: JSON on stdout, one object per case.
//
//   penstock-attention-bench [threads] [prefill|decode|chunk|all] [bfloat16|float32|int8]
//
// Decode: one query token for each of B sequences over `context` positions. Prefill: the last 512
// tokens of a prompt. Chunk: a few tokens of one. Every case alternates between several KV caches,
// so that they are read from memory. The roofline is the larger of bytes / read bandwidth and
// operations / GEMM peak, measured in the same seconds. `of_registers` is the share of the rate
// with all operands in registers.
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "common/json_text.h"
#include "shard/backend/cpu/attention/attention_plan.h"
#include "shard/backend/cpu/attention/attention_stage.h"
#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/step_buffers.h"
#include "tests/bench/cpu/machine_peaks.h"
#include "tests/bench/usage.h"

namespace penstock::shard::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kBlock = 16;
constexpr std::size_t kCellBytes = std::size_t{384} << 20;

struct Case {
  std::uint32_t kv_heads, group, head_dim;
  std::uint32_t sequences, context, tokens;
};

AttentionOp OpOf(const Case& c, std::uint32_t cache) {
  return {.cache = cache,
          .scale = 0.125f,
          .heads = {c.kv_heads * c.group, c.kv_heads, c.head_dim, c.head_dim}};
}

Program ProgramOf(const Case& c) {
  Program program;
  program.part.world = 1;
  program.vocabulary = 1;
  const AttentionOp op = OpOf(c, 0);
  program.widths[static_cast<std::size_t>(Buffer::kQkv)] = op.heads.QkvWidth();
  program.widths[static_cast<std::size_t>(Buffer::kAttention)] = op.heads.OutputWidth();
  program.body.push_back(op);
  return program;
}

class AttentionCase {
 public:
  AttentionCase(const Kernels& kernels, KvType cells, const Case& c, WorkerPool& pool)
      : kernels_(kernels), cells_(CellsOf(kernels, cells)), case_(c), pool_(pool) {
    const Program program = ProgramOf(c);
    const std::uint32_t rows = c.sequences * c.tokens;
    auto buffers = StepBuffers::Create(program, kernels, kernels.formats[FormatId::kPlain],
                                       {rows, c.context + c.tokens, 1, 0}, pool);
    if (!buffers.ok()) std::abort();
    buffers_ = std::move(*buffers);
    layout_ = {UniformCaches(1, c.kv_heads, c.head_dim), kBlock, kernels.weight};
    layout_.kv_type = cells;
    const std::uint32_t blocks_each = layout_.BlocksFor(c.context + c.tokens);
    const std::uint64_t layer = layout_.Bytes(blocks_each * c.sequences);
    layout_.caches.resize(kCellBytes / layer + 1, layout_.caches.front());
    const std::uint32_t blocks = blocks_each * c.sequences;
    if (!cache_.Allocate(layout_, blocks, 0, pool).ok()) std::abort();
    std::memset(cache_.Head(0, 0).base, 0x3c, layout_.Bytes(blocks));
    const BufferView& queries = buffers_.View(Buffer::kQkv);
    std::fill_n(queries.Floats(0), queries.stride * rows, 0.1f);
    for (std::uint32_t i = 0; i < blocks; ++i) {
      blocks_.push_back(BlockId(static_cast<std::uint32_t>(std::uint64_t{i} * 7919 % blocks)));
      tables_.push_back(blocks_.back().value());
    }
    for (std::uint32_t i = 0; i < c.sequences; ++i) {
      RaggedSegment segment;
      segment.query_start = i * c.tokens;
      segment.query_count = c.tokens;
      segment.context_length = c.context;
      segments_.push_back(segment);
      table_starts_.push_back(i * blocks_each);
    }
    plan_.Build({.kv_heads = c.kv_heads,
                 .group = c.group,
                 .threads = pool.threads(),
                 .slots = buffers_.slots()},
                segments_);
  }

  // Seconds of the fastest layer.
  double Measure() {
    double best = 1e9;
    const auto end = Clock::now() + std::chrono::milliseconds(250);
    for (std::size_t layer = 0; Clock::now() < end; ++layer) {
      const AttentionOp op = OpOf(case_, static_cast<std::uint32_t>(layer % layout_.caches.size()));
      AttentionStage stage({kernels_, cells_, cache_, buffers_, pool_, plan_, tables_.data(),
                            table_starts_.data(), nullptr, buffers_.View(Buffer::kQkv),
                            buffers_.View(Buffer::kAttention), op});
      const auto begin = Clock::now();
      pool_.Run([&](std::uint32_t thread) { stage.Run(thread); });
      best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return best;
  }

  double Bytes() const {
    return static_cast<double>(layout_.CacheBytesPerToken(layout_.caches.front())) *
           case_.sequences * (case_.context + case_.tokens);
  }
  // Queries times keys and probabilities times values, causal.
  double Operations() const {
    const double seen = case_.context + (case_.tokens + 1) / 2.0;
    return 4.0 * case_.kv_heads * case_.group * case_.head_dim * case_.sequences * case_.tokens *
           seen;
  }

 private:
  const Kernels& kernels_;
  const CellKernels& cells_;
  const Case case_;
  WorkerPool& pool_;
  StepBuffers buffers_;
  PagedLayout layout_;
  KvCache cache_;
  std::vector<BlockId> blocks_;
  std::vector<std::uint32_t> tables_;
  std::vector<std::size_t> table_starts_;
  std::vector<RaggedSegment> segments_;
  AttentionPlan plan_;
};

std::vector<Case> Cases(const std::string& which) {
  std::vector<Case> cases;
  if (which == "decode" || which == "all") {
    for (std::uint32_t context : {127u, 1023u, 4095u}) {
      for (std::uint32_t batch : {1u, 8u, 32u}) cases.push_back({4, 8, 64, batch, context, 1});
    }
    for (const auto& [kv, group, dim] : {std::array{4u, 1u, 64u}, std::array{3u, 3u, 64u},
                                         std::array{2u, 7u, 64u}, std::array{2u, 4u, 128u}}) {
      cases.push_back({kv, group, dim, 8, 1023, 1});
    }
  }
  if (which == "prefill" || which == "all") {
    cases.push_back({4, 8, 64, 1, 0, 512});
    cases.push_back({4, 8, 64, 1, 1536, 512});
    cases.push_back({4, 1, 64, 1, 1536, 512});
    cases.push_back({2, 4, 128, 1, 1536, 512});
  }
  if (which == "chunk" || which == "all") {  // of a prompt that other sequences' decodes go with
    for (std::uint32_t context : {128u, 512u, 1536u}) {
      for (std::uint32_t tokens : {4u, 8u, 16u, 32u})
        cases.push_back({3, 3, 64, 1, context, tokens});
    }
    cases.push_back({3, 3, 64, 16, 383, 1});
  }
  return cases;
}

void Report(const Kernels& kernels, KvType cells, const Case& c, WorkerPool& pool,
            MachinePeaks& peaks) {
  AttentionCase attention(kernels, cells, c, pool);
  const double read = peaks.ReadBandwidth(kCellBytes);
  const double products = peaks.GemmPeak(kernels.weight, FormatId::kPlain);
  const double registers = peaks.RegisterPeak(FormatId::kPlain);
  const double seconds = attention.Measure();
  const double bytes = attention.Bytes(), operations = attention.Operations();
  const double roofline = std::max(bytes / read, operations / products) / 1e9;
  std::cout << JsonText(
                   boost::json::object{{"cells", KvTypeName(cells)},
                                       {"kv_heads", c.kv_heads},
                                       {"group", c.group},
                                       {"head_dim", c.head_dim},
                                       {"sequences", c.sequences},
                                       {"context", c.context + c.tokens},
                                       {"tokens", c.tokens},
                                       {"us", seconds * 1e6},
                                       {"gb_per_s", bytes / seconds / 1e9},
                                       {"read_gb_per_s", read},
                                       {"gflop_per_s", operations / seconds / 1e9},
                                       {"product_gflop_per_s", products},
                                       {"of_roofline", roofline / seconds},
                                       {"of_registers", operations / seconds / 1e9 / registers}})
            << std::endl;
}

constexpr const char* kUsage =
    "Usage: penstock-attention-bench [THREADS] [prefill|decode|chunk|all] [bfloat16|float32|int8]\n"
    "\n"
    "Prints the time of attention of the CPU backend as one JSON object per case.\n"
    "The defaults are 2, all and bfloat16.\n";

int Main(int argc, char** argv) {
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  const auto isa = ChooseIsa();
  if (!isa.ok()) {
    std::cerr << isa.status() << '\n';
    return 1;
  }
  const auto threads = argc > 1 ? bench::NumberArgument<std::uint32_t>("THREADS", argv[1]) : 2u;
  WorkerPool pool(threads);
  MachinePeaks peaks(threads, kCellBytes);
  const std::string which = argc > 2 ? argv[2] : "all";
  const KvType cells = ParseKvType(argc > 3 ? argv[3] : "bfloat16").value_or(KvType::kBFloat16);
  for (const Case& c : Cases(which)) {
    Report(*FindKernels(*isa, DType::kBFloat16), cells, c, pool, peaks);
  }
  return 0;
}

}  // namespace
}  // namespace penstock::shard::cpu

int main(int argc, char** argv) { return penstock::shard::cpu::Main(argc, argv); }
