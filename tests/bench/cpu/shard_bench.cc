// The shard alone, without network: reads commands from standard input, answers each with one line
// of JSON on standard output. So other programs can be measured in between, within the same
// minute.
//
//   penstock-shard-bench POOL_TOKENS MAX_LENGTH [options of penstock-shard]
//
//   peaks                            what the machine reaches now
//   decode ROWS CONTEXT SECONDS      steps of ROWS sequences at CONTEXT positions
//   prefill TOKENS SECONDS           one prompt
//   steps ROWS CONTEXT SECONDS       only the seconds of each step, for short runs
//   prompts TOKENS SECONDS           only the seconds of each prompt
//   read ROWS CONTEXT                the rate of reading the bytes of such a step
#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_text.h"
#include "common/options/log_setup.h"
#include "common/options/values.h"
#include "shard/app/platform.h"
#include "shard/app/shard_options.h"
#include "shard/backend/cpu/formats/weight_format.h"
#include "tests/bench/cpu/engine_driver.h"
#include "tests/bench/cpu/machine_peaks.h"
#include "tests/bench/cpu/roofline.h"
#include "tests/bench/usage.h"

namespace penstock::shard {
namespace {

// Beyond the caches of today's machines.
constexpr std::size_t kReadBytes = std::size_t{1} << 30;
constexpr std::size_t kMostReadBytes = std::size_t{5} << 29;

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << '\n';
  std::exit(1);
}

// The bytes of one token in all layers.
double KvBytes(const v1::DescribeResponse& facts) {
  double bytes = 0;
  for (const v1::KvGroup& group : facts.kv_groups()) {
    bytes += static_cast<double>(group.bytes_per_token());
  }
  return bytes;
}

class Bench {
 public:
  Bench(std::unique_ptr<EngineDriver> driver, Model model, std::uint32_t threads)
      : driver_(std::move(driver)),
        model_(std::move(model)),
        format_(FormatOf(driver_->Facts().backend())),
        kv_bytes_(KvBytes(driver_->Facts())),
        peaks_(threads, kMostReadBytes) {}

  boost::json::object Facts() const {
    const v1::DescribeResponse facts = driver_->Facts();
    return {{"backend", facts.backend()},
            {"dtype", facts.dtype()},
            {"parameters", facts.parameters()},
            {"load_seconds", driver_->load_seconds()}};
  }

  boost::json::object Run(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "peaks") return Peaks();
    StepShape shape;
    shape.weight_bytes = WeightBytes();
    shape.kv_bytes_per_token = kv_bytes_;
    shape.prompt = command == "prefill" || command == "prompts";
    double seconds = 1.0;
    words >> shape.rows;
    if (!shape.prompt) words >> shape.context;
    if (command == "read" && !words.fail()) return Read(shape);
    words >> seconds;
    if (!words.fail() && (command == "steps" || command == "prompts")) {
      return {{"seconds", boost::json::value_from(Times(shape, seconds))}};
    }
    if (words.fail() || (command != "prefill" && command != "decode")) {
      std::cerr << "not a command: " << line << '\n';
      std::exit(2);
    }
    return Measure(shape, seconds);
  }

 private:
  // By the name of the backend.
  static const cpu::WeightFormat& FormatOf(const std::string& backend) {
    for (const cpu::WeightFormat* format : cpu::AllFormats()) {
      const std::string_view suffix = format->backend_suffix();
      if (!suffix.empty() && backend.find(suffix) != std::string::npos) return *format;
    }
    return cpu::FormatOf(cpu::FormatId::kPlain);
  }

  // Bytes of each weight, scales included.
  double WeightBytes() const {
    constexpr std::size_t kColumns = 32;
    constexpr std::size_t kInner = 8192;
    std::size_t pack = 4 / DTypeBytes(model_.dtype);
    if (format_.id() == cpu::FormatId::kInt8) pack = cpu::kInt8Pack;
    if (format_.id() == cpu::FormatId::kInt4) pack = cpu::kInt4Pack;
    const cpu::PanelShape shape{kColumns, kInner, pack, model_.dtype};
    return static_cast<double>(format_.PanelBytes(shape)) / (kColumns * kInner);
  }

  boost::json::object Peaks() {
    return {{"read_gb_per_s", peaks_.ReadBandwidth(kReadBytes)},
            {"product_gflop_per_s", peaks_.GemmPeak(model_.dtype, format_.id())},
            {"register_gflop_per_s", peaks_.RegisterPeak(format_.id())}};
  }

  std::vector<double> Times(const StepShape& shape, double seconds) {
    return Must(shape.prompt ? driver_->Prefill(shape.rows, seconds)
                             : driver_->Decode(shape.rows, shape.context, seconds));
  }

  static double BytesOf(const std::vector<Phase>& phases) {
    double bytes = 0;
    for (const Phase& phase : phases) bytes += phase.bytes;
    return bytes;
  }

  boost::json::object Read(const StepShape& shape) {
    const double bytes = BytesOf(PhasesOf(model_, shape));
    return {{"step_bytes", bytes},
            {"gb_per_s", peaks_.ReadBandwidth(static_cast<std::size_t>(bytes))}};
  }

  boost::json::object Measure(const StepShape& shape, double seconds) {
    const std::vector<Phase> phases = PhasesOf(model_, shape);
    const double bytes = BytesOf(phases);
    const auto footprint = static_cast<std::size_t>(bytes);
    double bandwidth = peaks_.ReadBandwidth(footprint);
    double far_bandwidth = peaks_.ReadBandwidth(kReadBytes);
    double peak = peaks_.GemmPeak(model_.dtype, format_.id());
    double registers = peaks_.RegisterPeak(format_.id());
    std::vector<double> times = Times(shape, seconds);
    peak = std::max(peak, peaks_.GemmPeak(model_.dtype, format_.id()));
    registers = std::max(registers, peaks_.RegisterPeak(format_.id()));
    bandwidth = std::max(bandwidth, peaks_.ReadBandwidth(footprint));
    far_bandwidth = std::max(far_bandwidth, peaks_.ReadBandwidth(kReadBytes));
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / times.size();
    const double roofline = RooflineSeconds(phases, bandwidth * 1e9, peak * 1e9);
    return {{"rows", shape.rows},
            {"context", shape.context},
            {"prompt", shape.prompt},
            {"steps", times.size()},
            {"step_ms", median * 1e3},
            {"best_step_ms", times.front() * 1e3},
            {"p99_step_ms", times[times.size() * 99 / 100] * 1e3},
            {"worst_step_ms", times.back() * 1e3},
            {"tokens_per_second", shape.rows / median},
            {"mean_tokens_per_second", shape.rows / mean},
            {"best_tokens_per_second", shape.rows / times.front()},
            {"step_bytes", bytes},
            {"share_of_bandwidth", bytes / median / bandwidth / 1e9},
            {"roofline_ms", roofline * 1e3},
            {"of_roofline", roofline / median},
            {"best_of_roofline", roofline / times.front()},
            {"read_gb_per_s", bandwidth},
            {"read_1gib_gb_per_s", far_bandwidth},
            {"product_gflop_per_s", peak},
            {"register_gflop_per_s", registers}};
  }

  std::unique_ptr<EngineDriver> driver_;
  Model model_;
  const cpu::WeightFormat& format_;
  double kv_bytes_;
  cpu::MachinePeaks peaks_;
};

constexpr const char* kUsage =
    "Usage: penstock-shard-bench POOL_TOKENS MAX_LENGTH [options of penstock-shard]\n"
    "\n"
    "Reads commands from standard input and prints one line of JSON for each:\n"
    "  peaks | decode ROWS CONTEXT SECONDS | prefill TOKENS SECONDS | steps ROWS CONTEXT SECONDS "
    "|\n"
    "  prompts TOKENS SECONDS | read ROWS CONTEXT\n";

int Main(int argc, char** argv) {
  // The options of a shard follow.
  if (const auto exit = bench::ExitOfArguments(std::min(argc, 3), argv, kUsage)) return *exit;
  if (argc < 3) {
    std::cerr << kUsage;
    return 2;
  }
  const auto pool = bench::NumberArgument<std::uint32_t>("POOL_TOKENS", argv[1]);
  const auto length = bench::NumberArgument<std::uint32_t>("MAX_LENGTH", argv[2]);
  argv[2] = argv[0];
  const options::CommandLine line =
      options::ReadCommandLine(options::ProgramFor(options::kShard), argc - 2, argv + 2);
  if (line.exit_code.has_value()) return *line.exit_code;
  options::ConfigureLog(line.values, "shard");
  ModelRankOptions options = ReadShardOptions(line.values, Must(OpenPlatform(line.values, "")), "");
  Model model = Must(Model::Open(options.model));
  const auto threads = static_cast<std::uint32_t>(line.values.FindInt("cpu-threads").value_or(2));
  Bench bench(Must(EngineDriver::Open(std::move(options), pool, length)), std::move(model),
              threads);
  std::cout << JsonText(bench.Facts()) << std::endl;
  for (std::string command; std::getline(std::cin, command);) {
    std::cout << JsonText(bench.Run(command)) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace penstock::shard

int main(int argc, char** argv) { return penstock::shard::Main(argc, argv); }
