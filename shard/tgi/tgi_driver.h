// generate.v3.TextGenerationService as the second driver of a shard. The thread of the calls brings
// them; each meets the same call of the other ranks (MeetingPlace), and then runs on the model
// thread, one after the other. Health, Info and ServiceDiscovery concern the rank alone.
//
// Full: at most kMaxSecondCalls calls are on their way; more are refused with RESOURCE_EXHAUSTED.
#pragma once

#include <memory>
#include <string>

#include "shard/service/second_driver.h"

namespace penstock::shard {

struct TgiOptions {
  std::string model_folder;  // for the tokenizer; empty = generate.v3 answers without text calls
};

// The factory for HostedShard.
SecondDriverFactory TgiDriverFactory(TgiOptions options);

}  // namespace penstock::shard
