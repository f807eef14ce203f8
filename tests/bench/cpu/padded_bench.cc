// Time of a decode step in the padded KV layout compared with the paged one, on the cpu backend.
// Prints JSON.
//
//   penstock-padded-bench MODEL_FOLDER [dtype] [threads] [steps] [rows]
//
// The same sequences are decoded in both layouts, in alternate steps. Padded, they are one
// sub-batch. Its time includes ArrangeCells; `join_us` is that of the first step, which copies all
// rows. The ratio is that of the medians. The program fails if a logit differs in a bit.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "shard/backend/cpu/cpu_backend.h"
#include "tests/bench/cpu/duel.h"
#include "tests/bench/usage.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kBlock = 16;
constexpr std::uint32_t kChunk = 512;
constexpr std::uint32_t kContexts[] = {128, 1024};

double Median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

class Sides {
 public:
  Sides(const DuelArguments& arguments, Backend& backend, std::vector<std::uint32_t> lengths,
        std::uint32_t vocabulary)
      : backend_(backend), lengths_(std::move(lengths)), vocabulary_(vocabulary) {
    const std::uint32_t longest = *std::max_element(lengths_.begin(), lengths_.end());
    const std::uint32_t positions = longest + arguments.tokens + 1;
    const std::uint32_t blocks = (positions + kBlock - 1) / kBlock;
    const auto rows = static_cast<std::uint32_t>(lengths_.size());
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::vector<BlockId>& table = tables_.emplace_back();
      for (std::uint32_t i = 0; i < blocks; ++i) table.emplace_back(row * blocks + i);
    }
    BackendLimits limits;
    limits.max_step_tokens = std::max(kChunk, rows);
    limits.max_sequence_length = positions;
    limits.max_logit_rows = rows;
    Must(backend_.Prepare(limits, nullptr));
    Must(backend_.SetCells(rows * positions, rows));
    Must(backend_.AllocateCache(rows * blocks));
    for (std::uint32_t row = 0; row < rows; ++row) Prefill(row);
  }

  boost::json::object Run(std::uint32_t steps) {
    std::vector<double> times[2];
    double join = 0;
    for (std::uint32_t step = 0; step <= steps; ++step) {
      double seconds[2];
      std::vector<float> logits[2];
      for (const bool padded : {false, true}) seconds[padded] = Decode(padded, logits[padded]);
      if (std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)) != 0) {
        std::cerr << "step " << step << ": the layouts differ\n";
        std::exit(1);
      }
      for (std::uint32_t& length : lengths_) ++length;
      if (step == 0) {
        join = seconds[1];
        continue;
      }
      for (const bool padded : {false, true}) times[padded].push_back(seconds[padded]);
    }
    const double paged = Median(times[0]);
    const double padded = Median(times[1]);
    return {{"paged_us", paged * 1e6},
            {"padded_us", padded * 1e6},
            {"join_us", join * 1e6},
            {"ratio", padded / paged}};
  }

 private:
  TokenId TokenOf(std::uint32_t row, std::uint32_t position) const {
    return static_cast<TokenId>((row * 31 + position * 7) % vocabulary_);
  }

  void Prefill(std::uint32_t row) {
    for (std::uint32_t first = 0; first < lengths_[row]; first += kChunk) {
      const std::uint32_t count = std::min(kChunk, lengths_[row] - first);
      std::vector<TokenId> tokens;
      for (std::uint32_t i = 0; i < count; ++i) tokens.push_back(TokenOf(row, first + i));
      const RaggedSegment segment{0, count, first, tables_[row]};
      Must(backend_.Execute({tokens, {&segment, 1}, {}}));
    }
  }

  // Seconds of a step of all sequences.
  double Decode(bool padded, std::vector<float>& logits) {
    const auto rows = static_cast<std::uint32_t>(lengths_.size());
    std::vector<TokenId> tokens;
    std::vector<RaggedSegment> segments;
    std::vector<std::uint32_t> logit_rows;
    CellPart part;
    for (std::uint32_t row = 0; row < rows; ++row) {
      tokens.push_back(TokenOf(row, lengths_[row]));
      RaggedSegment& segment = segments.emplace_back();
      segment.query_start = row;
      segment.query_count = 1;
      segment.context_length = lengths_[row];
      if (padded) segment.row = SlotId(row);
      if (!padded) segment.blocks = tables_[row];
      logit_rows.push_back(row);
      CellRow& cells = part.rows.emplace_back(CellRow{SlotId(row), lengths_[row], {}});
      if (!joined_) cells.blocks = tables_[row];
      part.width = std::max(part.width, lengths_[row] + 1);
    }
    const auto begin = std::chrono::steady_clock::now();
    if (padded) Must(backend_.ArrangeCells({&part, 1}).status());
    Must(backend_.Execute({tokens, segments, logit_rows}));
    const TensorView view = Must(backend_.Logits(0, rows));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    joined_ = joined_ || padded;
    const auto* values = static_cast<const float*>(view.data);
    logits.assign(values, values + std::size_t{rows} * vocabulary_);
    return spent.count();
  }

  Backend& backend_;
  std::vector<std::uint32_t> lengths_;  // positions that have K and V, by sequence
  const std::uint32_t vocabulary_;
  std::vector<std::vector<BlockId>> tables_;
  bool joined_ = false;
};

constexpr const char* kUsage =
    "usage: penstock-padded-bench MODEL_FOLDER [DTYPE] [THREADS] [STEPS] [ROWS]\n"
    "\n"
    "Prints the time of a decode step in the padded KV layout and in the paged one as JSON.\n";

int Main(int argc, char** argv) {
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  DuelArguments arguments = ReadDuelArguments(argc, argv, "rows", 64);
  if (argc < 6) arguments.fifth = 16;
  const Model model = Must(Model::Open({arguments.folder, arguments.dtype}));
  CpuOptions options;
  options.program = model.program;
  options.weights = Must(model.Load(nullptr));
  options.dtype = model.dtype;
  options.block_size = kBlock;
  options.threads = arguments.threads;
  const std::unique_ptr<Backend> backend = Must(MakeCpuBackend(std::move(options)));
  boost::json::object report = DuelReport(arguments, model, "rows");
  report["backend"] = backend->Name();
  for (const std::uint32_t context : kContexts) {
    if (context + arguments.tokens + 1 > model.spec.max_position) continue;
    for (const bool equal : {true, false}) {
      std::vector<std::uint32_t> lengths;
      for (std::uint32_t row = 0; row < arguments.fifth; ++row) {
        lengths.push_back(equal ? context : context >> (row % 4));
      }
      const std::string name = (equal ? "equal_" : "mixed_") + std::to_string(context);
      report[name] =
          Sides(arguments, *backend, lengths, model.spec.vocabulary).Run(arguments.tokens);
    }
  }
  std::cout << JsonText(report) << '\n';
  return 0;
}

}  // namespace
}  // namespace penstock::shard

int main(int argc, char** argv) { return penstock::shard::Main(argc, argv); }
