// Runs a shard process: starts the servers, waits for a signal or a failed load, stops.
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

// `shards` are the ranks of this process, of any number of groups. Reports to the launcher the
// progress, that all ranks are loaded, or the error in one line. Returns the exit code
// (common/exit_codes.h): 0 after SIGTERM or SIGINT. The calling thread must be the only thread of
// the process, because it blocks the signals for all threads that are started later.
int RunShards(std::vector<HostedShard> shards, const Notifier& notifier);

}  // namespace penstock::shard
