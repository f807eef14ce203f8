// Weights in memory that a cache on disk can keep, since they have a name.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "shard/weights/loader.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard {

// Counts what was read.
class NamedSource final : public WeightSource {
 public:
  NamedSource(const LoadedWeights& weights, std::string identity)
      : loaded_(weights.views), identity_(std::move(identity)) {}
  std::int32_t Count() const override { return loaded_.Count(); }
  std::uint64_t Rows(std::int32_t index) const override { return loaded_.Rows(index); }
  std::uint64_t Columns(std::int32_t index) const override { return loaded_.Columns(index); }
  DType dtype() const override { return loaded_.dtype(); }
  absl::Status ReadRows(std::int32_t index, std::uint64_t first, std::uint64_t count,
                        void* out) const override {
    rows_read += count;
    return loaded_.ReadRows(index, first, count, out);
  }
  std::string Identity() const override { return identity_; }

  mutable std::atomic<std::uint64_t> rows_read = 0;

 private:
  const LoadedSource loaded_;
  const std::string identity_;
};

}  // namespace penstock::shard
