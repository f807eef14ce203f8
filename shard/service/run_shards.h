// The life of a shard process: start the servers, wait for a signal or for a failed load, stop.
#pragma once

#include <memory>
#include <vector>

#include "common/notify.h"
#include "shard/service/rank_engine.h"
#include "shard/service/second_driver.h"
#include "shard/service/shard_listen.h"

namespace penstock::shard {

struct HostedShard {
  std::unique_ptr<RankEngine> engine;
  ListenAddress listen;
  SecondDriverFactory second_driver = nullptr;
};

// The ranks that this process hosts, of any number of groups.
// Tells the launcher of progress, that all are loaded, or the one line of why not. Returns the exit
// code (common/exit_codes.h): 0 after SIGTERM or SIGINT. The calling thread must be the process's
// only one so far: signals are blocked in it and in all that it starts.
int RunShards(std::vector<HostedShard> shards, const Notifier& notifier);

}  // namespace penstock::shard
