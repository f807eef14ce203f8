#include "scheduler/cost/machine_model.h"

#include <algorithm>
#include <cmath>

#include "scheduler/cost/exact_math.h"

namespace penstock::scheduler {

struct MachineModel::Machine {
  std::string_view name;
  double flops;               // bf16, dense, per second
  double bandwidth;           // bytes per second
  double prefill_efficiency;  // of flops, prefill attention
  double decode_efficiency;   // of bandwidth, decode attention
  double stream_efficiency;   // of bandwidth, weights
  double gemm_efficiency;     // of flops, the generic variant's linear layers
  bool has_fp8;
};

namespace {

struct NamedShape {
  std::string_view name;
  ModelShape shape;
};

constexpr NamedShape k8b{"llama-3-8b", {32, 4096, 32, 8, 128, 14336, 128256}};
constexpr NamedShape k70b{"llama-3-70b", {80, 8192, 64, 8, 128, 28672, 128256}};

}  // namespace

// A100, H100 and H200.
struct MachineModel::Constants {
  static constexpr Machine kA100{"a100", 312e12, 2.039e12, 0.55, 0.80, 0.70, 0.87, false};
  static constexpr Machine kH100{"h100", 989e12, 3.35e12, 0.62, 0.90, 0.79, 0.78, true};
  static constexpr Machine kH200{"h200", 989e12, 4.8e12, 0.62, 0.88, 0.755, 0.76, true};
  static constexpr const Machine* kAll[] = {&kA100, &kH100, &kH200};
};

struct MachineModel::Entry {
  const Machine* machine;
  const ModelShape* shape;
  std::string_view shape_name;
  int ranks;
  bool fp8;
  bool generic;
  LinearRow row;

  std::string Name() const {
    std::string name(machine->name);
    name += "-" + std::string(shape_name) + "-tp" + std::to_string(ranks);
    if (fp8) name += "-fp8";
    if (generic) name += "-generic";
    return name;
  }
};

const std::vector<MachineModel::Entry>& MachineModel::Entries() {
  constexpr const Machine& kA100 = Constants::kA100;
  constexpr const Machine& kH100 = Constants::kH100;
  constexpr const Machine& kH200 = Constants::kH200;
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all = {
        {&kA100, &k8b.shape, k8b.name, 1, false, false, {9.74, 53.50, 4}},
        {&kA100, &k8b.shape, k8b.name, 2, false, false, {5.32, 28.59, 4}},
        {&kA100, &k70b.shape, k70b.name, 4, false, false, {25.33, 128.62, 4}},
        {&kA100, &k70b.shape, k70b.name, 8, false, false, {14.08, 71.00, 4}},
        {&kH100, &k8b.shape, k8b.name, 1, false, false, {5.46, 17.47, 5}},
        {&kH100, &k8b.shape, k8b.name, 2, false, false, {2.87, 8.74, 5}},
        {&kH100, &k8b.shape, k8b.name, 4, false, false, {1.65, 4.45, 4}},
        {&kH100, &k70b.shape, k70b.name, 1, false, false, {48.98, 175.0, 10}},
        {&kH100, &k70b.shape, k70b.name, 2, false, false, {25.54, 87.67, 12}},
        {&kH100, &k70b.shape, k70b.name, 4, false, false, {12.90, 42.77, 7}},
        {&kH100, &k70b.shape, k70b.name, 8, false, false, {7.09, 21.74, 4}},
        {&kH200, &k8b.shape, k8b.name, 1, false, false, {4.08, 18.14, 5}},
        {&kH200, &k8b.shape, k8b.name, 2, false, false, {2.27, 8.90, 5}},
        {&kH200, &k8b.shape, k8b.name, 4, false, false, {1.41, 4.51, 4}},
        {&kH200, &k70b.shape, k70b.name, 2, false, false, {18.62, 87.03, 7}},
        {&kH200, &k70b.shape, k70b.name, 4, false, false, {9.55, 43.12, 6}},
        {&kH200, &k70b.shape, k70b.name, 8, false, false, {5.36, 21.80, 4}},
        {&kH100, &k8b.shape, k8b.name, 1, true, false, {3.45, 12.64, 4}},
        {&kH100, &k70b.shape, k70b.name, 2, true, false, {14.35, 56.81, 4}},
        {&kH100, &k70b.shape, k70b.name, 4, true, false, {8.26, 30.36, 4}},
        {&kH100, &k70b.shape, k70b.name, 8, true, false, {5.38, 18.20, 4}},
        {&kH200, &k8b.shape, k8b.name, 1, true, false, {2.87, 11.79, 4}},
        {&kH200, &k70b.shape, k70b.name, 1, true, false, {20.42, 102.24, 4}},
        {&kH200, &k70b.shape, k70b.name, 2, true, false, {11.25, 52.61, 4}},
        {&kH200, &k70b.shape, k70b.name, 4, true, false, {6.98, 28.73, 4}},
        {&kH200, &k70b.shape, k70b.name, 8, true, false, {4.75, 18.10, 4}},
    };
    for (const Machine* machine : Constants::kAll) {
      for (const NamedShape* named : {&k8b, &k70b}) {
        for (const int ranks : {1, 2, 4, 8}) {
          all.push_back({machine, &named->shape, named->name, ranks, false, true, {}});
          if (machine->has_fp8) {
            all.push_back({machine, &named->shape, named->name, ranks, true, true, {}});
          }
        }
      }
    }
    return all;
  }();
  return entries;
}

std::vector<std::string> MachineModel::Names() {
  std::vector<std::string> names;
  for (const Entry& entry : Entries()) names.push_back(entry.Name());
  return names;
}

std::optional<MachineModel> MachineModel::Find(std::string_view name) {
  for (const Entry& entry : Entries()) {
    if (entry.Name() != name) continue;
    const LinearRow row = entry.generic
                              ? GenericRow(*entry.machine, *entry.shape, entry.ranks, entry.fp8)
                              : entry.row;
    return MachineModel(*entry.machine, *entry.shape, row, entry.ranks);
  }
  return std::nullopt;
}

double ModelShape::LinearParameters() const {
  const double query = query_heads * head_size;
  const double kv = kv_heads * head_size;
  return layers * (hidden * (query + 2 * kv) + query * hidden + 3 * hidden * ffn);
}

std::vector<std::string_view> MachineModel::Machines() {
  std::vector<std::string_view> names;
  for (const Machine* machine : Constants::kAll) names.push_back(machine->name);
  return names;
}

std::optional<ModelShape> MachineModel::ShapeNamed(std::string_view name) {
  for (const NamedShape* named : {&k8b, &k70b}) {
    if (named->name == name) return named->shape;
  }
  return std::nullopt;
}

std::optional<MachineModel> MachineModel::Generic(std::string_view machine, const ModelShape& shape,
                                                  int ranks, bool fp8) {
  for (const Machine* known : Constants::kAll) {
    if (known->name != machine || (fp8 && !known->has_fp8)) continue;
    return MachineModel(*known, shape, GenericRow(*known, shape, ranks, fp8), ranks);
  }
  return std::nullopt;
}

MachineModel::LinearRow MachineModel::GenericRow(const Machine& machine, const ModelShape& shape,
                                                 int ranks, bool fp8) {
  const double parameters = shape.LinearParameters() / ranks;
  const double bytes = fp8 ? 1 : 2;
  const double flops = fp8 ? 2 * machine.flops : machine.flops;
  LinearRow row;
  row.stream_ms = parameters * bytes / (machine.bandwidth * machine.stream_efficiency) * 1000;
  row.token_us = 2 * parameters / (flops * machine.gemm_efficiency) * 1e6;
  return row;
}

double MachineModel::KvHeads() const { return std::max(shape_.kv_heads / ranks_, 1.0); }

// Two all-reduces per layer: latency alone up to 64 KiB, then bandwidth.
double MachineModel::AllReduce(double tokens) const {
  if (ranks_ == 1) return 0;
  const double bytes = tokens * shape_.hidden * 2;
  const double rate = ranks_ == 2 ? 320e9 : ranks_ == 4 ? 240e9 : 265e9;
  const double each = bytes <= 65536 ? 0.005 : 0.0045 + bytes / rate * 1000;
  return 2 * shape_.layers * each;
}

double MachineModel::Head(double sequences) const {
  const double weights = shape_.vocabulary * shape_.hidden / ranks_;
  const double stream = weights * 2 / (machine_->bandwidth * machine_->stream_efficiency);
  const double compute = 2 * weights * sequences / (0.7 * machine_->flops);
  return std::max(stream, compute) * 1000;
}

StepTerms MachineModel::Terms(const StepShape& step) const {
  StepTerms terms;
  const auto tokens = static_cast<double>(step.Tokens());
  const double layers = shape_.layers;
  const double query = shape_.query_heads / ranks_;
  const double sequences = static_cast<double>(step.prompt_chunks + step.decode_rows);
  terms.linear = SmoothMaximum(row_.stream_ms, row_.token_us * tokens / 1000, row_.sharpness2);
  if (step.prompt_tokens > 0) {
    const double pairs = static_cast<double>(step.prompt_pairs2) / 2;
    const double flops = 4 * query * shape_.head_size * pairs;
    const double rate = machine_->flops * machine_->prefill_efficiency;
    terms.prefill = layers * (0.012 + flops / rate * 1000);
  }
  if (step.decode_rows > 0) {
    const double bytes =
        static_cast<double>(step.decode_context) * 2 * KvHeads() * shape_.head_size * 2;
    const double rate = machine_->bandwidth * machine_->decode_efficiency;
    const double rows = static_cast<double>(step.decode_rows);
    terms.decode = layers * (0.011 + 0.00022 * rows * query / 32 + bytes / rate * 1000);
  }
  terms.elementwise = layers * (0.018 + 1e-4 * tokens * (shape_.hidden / 4096) *
                                            (0.5 + 0.5 / ranks_) * (3.35e12 / machine_->bandwidth));
  terms.all_reduce = AllReduce(tokens);
  terms.head = Head(sequences);
  terms.sampling = 0.25 + 0.002 * sequences;
  return terms;
}

Duration MachineModel::StepTime(const StepShape& step) const {
  if (step.Tokens() == 0) return Duration(0);
  return Duration(static_cast<Duration::rep>(std::floor(Terms(step).Sum() * 1e6 + 0.5)));
}

}  // namespace penstock::scheduler
