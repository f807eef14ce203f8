// generate.v3.TextGenerationService as the second driver of a shard. A call passes the barrier of
// the ranks (RankBarrier) and then runs on the model thread, one call after the other. Health, Info
// and ServiceDiscovery concern the rank alone.
//
// Full: at most kMaxSecondCalls calls are open; more are refused with RESOURCE_EXHAUSTED.
#pragma once

#include <string>

#include "shard/service/second_driver.h"

namespace penstock::shard {

// The factory for HostedShard. `model_folder` has the tokenizer; if it is empty, calls that need
// text fail.
SecondDriverFactory TgiDriverFactory(std::string model_folder);

}  // namespace penstock::shard
