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

  TgiRequest request;  // the prompt stays only for prefill tokens once the sequence has started
  RequestText text;
  SequencePool::Place place;
  SequenceId sequence;
  bool started = false;  // the engine knows it
  bool stopped = false;  // reported as ended; place and engine state are given up

  std::uint32_t computed = 0;  // positions of the prompt that are computed
  std::uint32_t next = 0;      // positions that the next step computes
  std::uint32_t generated = 0;
  std::vector<float> prompt_logprobs;

  // Of the last step.
  std::optional<SampledToken> sampled;
  ShardFinish finish = ShardFinish::kNone;
  std::string error;

  bool prefilling() const { return computed < request.start.prompt_length; }
};

// Members in their order, shared by nobody.
using Members = std::vector<std::unique_ptr<Member>>;

}  // namespace penstock::shard
