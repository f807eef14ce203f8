// The metrics of text-generation-inference, so that its dashboards and alerts work: the same events
// under its names, buckets and labels. What TGI counts twice is counted once. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/time.h"

namespace prometheus {
class Registry;
}

namespace penstock::router {

class TgiMetrics {
 public:
  // Histograms of lengths have 100 buckets up to these.
  TgiMetrics(prometheus::Registry& registry, std::uint32_t max_input_tokens,
             std::uint32_t max_total_tokens, std::uint32_t block_size);
  ~TgiMetrics();

  void Arrived();
  void Succeeded();
  void Failed(std::string_view err);  // validation, overloaded, generation, incomplete, dropped, …
  void Duration(penstock::Duration total);
  void Times(penstock::Duration validation, penstock::Duration queue, penstock::Duration inference,
             std::uint64_t generated);
  void Tokens(std::uint64_t prompt, std::uint64_t generated);
  // Drafts that a step accepted for a sequence; not called without speculation.
  void Skipped(std::uint64_t tokens);
  void MaxNewTokens(std::uint64_t tokens);
  void Queue(std::uint64_t waiting, std::uint64_t running);
  void ReservedBlocks(std::uint64_t blocks);
  void Step(penstock::Duration duration, std::uint64_t decode_rows, std::uint64_t prefill_tokens);

 private:
  const std::uint32_t block_size_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::router
