// Sampling on the device: an optional interface of a backend. It spares the host the transfer of
// the logits. The executor uses it for a step if every row can be sampled there.
//
// Such steps can also run ahead of the host: BeginStep only enqueues a step. The next step may
// begin before the tokens of this one are known to the host, because it reads them on the device.
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

struct DeviceToken {
  TokenId token = -1;  // -1 where Sampler::Sample would fail
  float logprob = 0;   // if the request asks for it
};

// Steps that may be begun and not ended: one that runs, and the one after it.
inline constexpr std::uint32_t kMaxStepsInFlight = 2;

class DeviceSampler {
 public:
  virtual ~DeviceSampler() = default;

  // Whether every row of a step with these requests can be sampled here.
  virtual bool CanSample(std::span<const SampleRequest> requests) const = 0;

  // Replaces Backend::Logits for logit_rows[first, first + requests.size()), at most
  // max_logit_rows: samples the token of each by the rules of shard/sampling.
  virtual absl::Status Sample(std::uint32_t first, std::span<const SampleRequest> requests,
                              std::span<DeviceToken> out) = 0;

  // Replaces Execute and Sample: enqueues the step and the sampling of each logit row.
  // newest_samples[row] is the index, among the tokens of the step begun before, of the row's
  // token, which its request does not hold yet; -1: the batch holds the token. `ready`
  // is called once, on any thread, when EndStep would not wait. At most kMaxStepsInFlight steps
  // are begun and not ended. CopyBlocks between two steps is done in order.
  virtual absl::Status BeginStep(const RaggedBatch& batch,
                                 std::span<const std::int32_t> newest_samples,
                                 std::span<const SampleRequest> requests,
                                 std::function<void()> ready) = 0;

  // Waits, up to a deadline, for the oldest step and gives its tokens.
  virtual absl::Status EndStep(std::span<DeviceToken> out) = 0;
};

}  // namespace penstock::shard
