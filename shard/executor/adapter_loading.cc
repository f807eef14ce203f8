#include "shard/executor/adapter_loading.h"

#include <algorithm>
#include <utility>

#include "common/human_bytes.h"
#include "common/log.h"
#include "common/status.h"
#include "shard/model/features.h"

namespace penstock::shard {
namespace {

// "--lora NAME=FOLDER: what".
absl::Status OfOption(const absl::Status& status, const AdapterFolder& of) {
  const std::string option = "--lora " + of.name + "=";
  const std::string what = Message(status);
  if (what.starts_with(of.folder + ": ")) return absl::Status(status.code(), option + what);
  return WithContext(status, option + of.folder);
}

}  // namespace

absl::StatusOr<std::vector<LoraAdapter>> ReadAdapters(const std::vector<AdapterFolder>& folders,
                                                      const Model& model) {
  std::vector<LoraAdapter> adapters;
  for (const AdapterFolder& of : folders) {
    auto read = ReadLoraAdapter(of.folder, model.program, model.weight_plan);
    if (!read.ok()) return OfOption(read.status(), of);
    adapters.push_back(*std::move(read));
  }
  return adapters;
}

std::uint64_t AdapterBytes(std::span<const LoraAdapter> adapters) {
  std::uint64_t bytes = 0;
  for (const LoraAdapter& adapter : adapters) {
    bytes += adapter.Elements() * DTypeBytes(adapter.bfloat16 ? DType::kBFloat16 : DType::kFloat32);
  }
  return bytes;
}

absl::Status MakeAdapters(const std::vector<AdapterFolder>& folders,
                          const std::vector<LoraAdapter>& read, const Backend& backend,
                          AdapterTable& table) {
  for (std::size_t i = 0; i < read.size(); ++i) {
    auto made = backend.MakeAdapter(read[i]);
    if (!made.ok()) return OfOption(made.status(), folders[i]);
    const std::uint64_t bytes = (*made)->MemoryBytes();
    log::Info("adapter " + folders[i].name + ": rank " + std::to_string(read[i].rank) + ", " +
              HumanBytes(bytes));
    table.Add(folders[i].name, {*std::move(made), folders[i].folder, read[i].rank, bytes});
  }
  return absl::OkStatus();
}

absl::StatusOr<ReadyAdapter> LoadAdapter(const std::string& folder, const Model& model,
                                         const Backend& backend, RankDevice& device) {
  PENSTOCK_RETURN_IF_ERROR(CheckFeature(Feature::kLora, model.spec.model_type, model.program));
  PENSTOCK_ASSIGN_OR_RETURN(const LoraAdapter read,
                            ReadLoraAdapter(folder, model.program, model.weight_plan));
  PENSTOCK_ASSIGN_OR_RETURN(const DeviceMemory memory, device.Memory());
  const std::uint64_t needed = AdapterBytes({&read, 1});
  if (needed > memory.free_bytes / std::max(1u, memory.ranks)) {
    return absl::ResourceExhaustedError(folder + ": the adapter takes " + HumanBytes(needed) +
                                        " of each rank, and " + HumanBytes(memory.free_bytes) +
                                        " are free");
  }
  auto made = backend.MakeAdapter(read);
  if (!made.ok()) return WithContext(made.status(), folder);
  const std::uint64_t bytes = (*made)->MemoryBytes();
  return ReadyAdapter{*std::move(made), folder, read.rank, bytes};
}

void AddAdapterFacts(const Backend& backend, const Program& program, const AdapterTable& table,
                     v1::DescribeResponse& facts) {
  if (backend.HasAdapters() && WhyNot(Feature::kLora, program).empty()) {
    facts.add_capabilities("adapters");
  }
  for (const auto& [id, ready] : table.all()) {
    v1::Adapter& adapter = *facts.add_adapters();
    adapter.set_id(id);
    adapter.set_folder(ready.folder);
    adapter.set_rank(ready.rank);
    adapter.set_bytes(ready.bytes);
  }
}

}  // namespace penstock::shard
