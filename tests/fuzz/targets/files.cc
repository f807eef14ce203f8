// Files of a model folder and of an operator.
#include <algorithm>
#include <limits>
#include <string>

#include "launcher/config_file.h"
#include "launcher/serving/serving_properties.h"
#include "scheduler/log/input_log.h"
#include "shard/model/model_spec.h"
#include "shard/weights/safetensors_header.h"
#include "tests/fuzz/target.h"

namespace penstock::fuzz {
namespace {

void CheckLines(const absl::Status& status, std::ptrdiff_t lines) {
  if (status.ok()) return;
  Require(!status.message().empty(), "an error has a text");
  Require(std::ranges::count(status.message(), '\n') < lines, "an error has few lines");
}

void CheckTensors(const std::vector<shard::TensorInfo>& tensors, std::uint64_t begin,
                  std::uint64_t data_bytes) {
  std::uint64_t end = begin;
  for (const shard::TensorInfo& tensor : tensors) {
    Require(tensor.offset >= end, "tensors do not overlap");
    end = tensor.offset + tensor.bytes;
    Require(end >= tensor.offset && end <= begin + data_bytes, "a tensor lies in the file");
    if (!tensor.dtype) continue;
    std::uint64_t elements = 1;
    for (const std::uint64_t size : tensor.shape) {
      Require(size == 0 || elements <= std::numeric_limits<std::uint64_t>::max() / size,
              "a shape has a size");
      elements *= size;
    }
    Require(elements <= tensor.bytes || tensor.bytes == 0, "a tensor has the bytes of its shape");
  }
}

// A log whose records have the checksums that they need: a fuzzer does not find them.
std::string Sealed(std::string_view bytes) {
  const std::string begin = scheduler::EncodeLogHeader({});
  std::string log = begin.substr(0, begin.find('\n') + 1);
  for (const std::string_view record : Records(bytes)) {
    std::uint32_t hash = 2166136261u;
    for (const char c : record) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    for (std::uint64_t value : {static_cast<std::uint64_t>(record.size()), std::uint64_t{hash}}) {
      for (; value >= 0x80; value >>= 7) log.push_back(static_cast<char>(value | 0x80));
      log.push_back(static_cast<char>(value));
    }
    log += record;
  }
  return log;
}

// An input log that can be read is encoded again, and must then read as the same inputs.
void ReadLog(std::string_view bytes) {
  scheduler::InputLogReader reader(bytes);
  const auto config = reader.ReadHeader();
  Require(config || !reader.error().empty(), "a refused log has an error");
  if (!config) return;
  const std::string header = scheduler::EncodeLogHeader(*config);
  scheduler::InputLogReader again(header);
  Require(scheduler::EncodeLogHeader(*again.ReadHeader()) == header, "the same config");
  while (const auto input = reader.Next()) {
    const std::string record = scheduler::EncodeInput(*input);
    const std::string log = header + record;
    scheduler::InputLogReader once_more(log);
    once_more.ReadHeader();
    const auto same = once_more.Next();
    Require(same && scheduler::EncodeInput(*same) == record, "the same input");
  }
}

}  // namespace

// Parts: config.json, and optionally generation_config.json.
void ReadModelConfig(std::string_view bytes) {
  const auto parts = Parts(bytes);
  const auto spec = shard::ReadModelSpec(std::string(parts[0]), std::string(PartOf(parts, 1)));
  CheckLines(spec.status(), 1);
  if (!spec.ok()) return;
  Require(spec->vocabulary > 0 && spec->layers > 0 && spec->hidden > 0, "a model has sizes");
  Require(spec->build != nullptr, "a model has a decoder");
}

// A line with the bytes of the data, then the header.
void ReadSafetensors(std::string_view bytes) {
  std::uint64_t data_bytes = 0;
  for (const char c : TakeLine(bytes)) data_bytes = data_bytes * 10 + (c - '0') % 10u;
  data_bytes %= std::uint64_t{1} << 40;
  const std::uint64_t before = 8 + bytes.size();
  const auto tensors = shard::ParseSafetensorsHeader(bytes, before, data_bytes);
  CheckLines(tensors.status(), 1);
  if (tensors.ok()) CheckTensors(*tensors, before, data_bytes);
}

void ReadInputLog(std::string_view bytes) {
  ReadLog(bytes);
  ReadLog(Sealed(bytes));
}

void ReadServingProperties(std::string_view bytes) {
  const auto settings = launcher::ParseServingProperties(bytes, "serving.properties", ".", {});
  constexpr std::ptrdiff_t kLines = 1000;  // one a key
  CheckLines(settings.status(), kLines);
}

void ReadYaml(std::string_view bytes) {
  const auto entries = launcher::ParseConfigText(std::string(bytes), "server.yaml");
  if (!entries.ok()) return CheckLines(entries.status(), 2);
  for (const auto& entry : *entries) Require(!entry.values.empty(), "an entry has a value");
}

}  // namespace penstock::fuzz
