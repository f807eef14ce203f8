// How a rank stores K and V (--kv-layout), chosen once at start. The executor asks only here: a
// plan of the paged layout has no padded KV rows, and its pool no cells.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>

#include "penstock/v1/shard.pb.h"
#include "shard/cache/padded/pool_split.h"
#include "shard/executor/memory_plan.h"
#include "shard/executor/warmup.h"
#include "shard/model/model.h"

namespace penstock::shard {

// The paged layout: all K and V are in KV blocks.
class KvLayout {
 public:
  virtual ~KvLayout() = default;
  virtual v1::AttentionLayout attention() const { return v1::ATTENTION_LAYOUT_RAGGED; }
  // Distinguishes the warm-up tables of one model.
  virtual std::string table_suffix() const { return ""; }
  // Unimplemented if the layout cannot hold the model.
  virtual absl::Status Check(const Model&) const { return absl::OkStatus(); }
  // Before weights are read.
  virtual void Adapt(Program&) const {}
  // `rows`: how the backend stores padded KV rows.
  virtual std::unique_ptr<CachePlan> Plan(const PagedLayout& layout, const StatePlan& states,
                                          std::uint32_t window, const RowLimits& rows) const;
  // Limits the decodes of a warm-up to those that fit into `pool`.
  virtual void LimitWarmup(const PoolSize& pool, WarmupShape& shape) const;
};

// Blocks hold prompts and the prefix cache; each decoding sequence has a padded KV row
// (docs/decisions/0014). PaddedRows moves the rows of a running group.
class PaddedLayout final : public KvLayout {
 public:
  v1::AttentionLayout attention() const override { return v1::ATTENTION_LAYOUT_PADDED; }
  std::string table_suffix() const override { return " padded"; }
  absl::Status Check(const Model& model) const override;
  void Adapt(Program& program) const override;
  std::unique_ptr<CachePlan> Plan(const PagedLayout& layout, const StatePlan& states,
                                  std::uint32_t window, const RowLimits& rows) const override;
  void LimitWarmup(const PoolSize& pool, WarmupShape& shape) const override;
};

}  // namespace penstock::shard
