// What a backend may be besides: one that picks tokens where its logits are, which spares the host
// their transfer. The executor uses it for steps of which every row can be picked there.
//
// Threading and errors: as Backend.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

#include "common/ids.h"

namespace penstock::shard {

struct SampleRequest;  // shard/sampling/sampler.h

class TokenPicker {
 public:
  virtual ~TokenPicker() = default;

  virtual bool CanPick(const SampleRequest& request) const = 0;

  // In place of Backend::Logits for the rows logit_rows[first, first + requests.size()), at most
  // max_logit_rows: the token of each by the rules of shard/sampling, -1 where Sampler::Sample
  // would fail. Every request is one that can be picked.
  virtual absl::Status Pick(std::uint32_t first, std::span<const SampleRequest> requests,
                            std::span<TokenId> out) = 0;
};

}  // namespace penstock::shard
