// One request in a cached batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/step_result.h"
#include "shard/tgi/request.h"
#include "shard/tgi/request_text.h"
#include "shard/tgi/sequence_pool.h"

namespace penstock::shard {

struct Member {
  Member(TgiRequest request_in, RequestText text_in)
      : request(std::move(request_in)), text(std::move(text_in)) {}

  TgiRequest request;  // after the start the prompt is kept only for prefill tokens
  RequestText text;
  SequencePool::Allocation allocation;
  SequenceId sequence;
  bool started = false;  // in the engine
  bool stopped = false;  // reported as ended and freed

  std::uint32_t computed = 0;  // positions of the prompt
  std::uint32_t next = 0;      // positions of the next step
  std::uint32_t generated = 0;
  std::vector<float> prompt_logprobs;

  // Of the last step.
  std::optional<SampledToken> sampled;
  ShardFinish finish = ShardFinish::kNone;
  std::string error;

  bool prefilling() const { return computed < request.start.prompt_length; }
};

// In the order of the batch.
using Members = std::vector<std::unique_ptr<Member>>;

}  // namespace penstock::shard
