// What a backend may be besides: one that picks tokens where its logits are, which spares the host
// their transfer. The executor uses it for steps of which every row can be picked there.
//
// Such steps can also run ahead of the host: BeginStep only enqueues, and the next step may be
// begun before the tokens of this one are known, since it finds them on the device.
//
// Threading and errors: as Backend.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <span>

#include "common/ids.h"
#include "shard/backend/backend.h"

namespace penstock::shard {

struct SampleRequest;  // shard/sampling/sampler.h

struct PickedToken {
  TokenId token = -1;  // -1 where Sampler::Sample would fail
  float logprob = 0;   // where the request asks for it
};

// Steps begun and not ended: one that runs, and the one behind it.
inline constexpr std::uint32_t kMostStepsAhead = 2;

class TokenPicker {
 public:
  virtual ~TokenPicker() = default;

  // Whether the rows of one step can be picked here, all of them.
  virtual bool CanPick(std::span<const SampleRequest> requests) const = 0;

  // In place of Backend::Logits for the rows logit_rows[first, first + requests.size()), at most
  // max_logit_rows: the token of each by the rules of shard/sampling. The requests can be picked.
  virtual absl::Status Pick(std::uint32_t first, std::span<const SampleRequest> requests,
                            std::span<PickedToken> out) = 0;

  // In place of Execute and Pick: enqueues the step with all its picks, one for each logit row.
  // newest[row] says which pick of the step begun before is the row's token, -1: it is in the
  // batch. The request of such a row knows all tokens but that one. `ready` is called once, on any
  // thread, when EndStep would no longer wait. At most kMostStepsAhead are begun and not ended;
  // what lies between them (CopyBlocks) is done in order.
  virtual absl::Status BeginStep(const RaggedBatch& batch, std::span<const std::int32_t> newest,
                                 std::span<const SampleRequest> requests,
                                 std::function<void()> ready) = 0;

  // The picks of the oldest step that was begun; waits for it, up to a deadline.
  virtual absl::Status EndStep(std::span<PickedToken> out) = 0;
};

}  // namespace penstock::shard
