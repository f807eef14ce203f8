// From the folders of adapters to those of a rank: with the model, and beside it later.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/adapter_name.h"
#include "shard/adapters/lora_adapter.h"
#include "shard/backend/backend.h"
#include "shard/executor/adapter_table.h"
#include "shard/executor/rank_device.h"
#include "shard/model/model.h"

namespace penstock::shard {

// Those that are loaded with the model: before its weights, so that a wrong folder is named at
// once.
absl::StatusOr<std::vector<LoraAdapter>> ReadAdapters(const std::vector<AdapterFolder>& folders,
                                                      const Model& model);
// Memory that they will take.
std::uint64_t AdapterBytes(std::span<const LoraAdapter> adapters);
// `read` are the adapters of these folders.
absl::Status MakeAdapters(const std::vector<AdapterFolder>& folders,
                          const std::vector<LoraAdapter>& read, const Backend& backend,
                          AdapterTable& table);

// One more. ResourceExhausted if the device has no memory for it.
absl::StatusOr<ReadyAdapter> LoadAdapter(const std::string& folder, const Model& model,
                                         const Backend& backend, RankDevice& device);

void AddAdapterFacts(const Backend& backend, const Program& program, const AdapterTable& table,
                     v1::DescribeResponse& facts);

}  // namespace penstock::shard
