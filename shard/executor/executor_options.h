// What a ModelExecutor and its parts need to know of the model and the group.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "shard/sampling/watermark.h"

namespace penstock::shard {

class AdapterTable;
class DeviceSampler;
class GrammarCache;

struct ExecutorOptions {
  // Block tables of a sequence.
  std::uint32_t Tables() const { return window_tables ? kv_groups : 1; }

  std::uint32_t slots = 0;
  std::uint32_t kv_groups = 1;  // of the model
  bool window_tables = false;   // as in v1::Limits
  std::uint32_t vocabulary = 0;
  std::vector<TokenId> eos_token_ids;
  std::uint32_t max_logit_rows = 64;  // rows of one Backend::Logits call
  GrammarCache* grammars = nullptr;   // rank 0 only; outlives the executor; null: no grammars
  AdapterTable* adapters = nullptr;   // outlives the executor; null: no adapters
  bool late_masks = false;            // as in v1::Limits
  bool forced_tokens = false;         // the same
  // How long one step waits for forced tokens, all rows together, before it begins.
  Duration forced_wait = std::chrono::microseconds(300);
  WatermarkSettings watermark;
  // The backend's own sampler. Null if the backend has none or the group has several ranks.
  DeviceSampler* device_sampler = nullptr;
};

}  // namespace penstock::shard
