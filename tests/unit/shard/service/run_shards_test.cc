#include "shard/service/run_shards.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "tests/unit/shard/service/fake_engine.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

// A process whose engine loads for ever. Ends with SIGALRM if RunShards does not return.
[[noreturn]] void StopWhileLoading() {
  constexpr unsigned kSeconds = 5;
  const TempFolder folder;
  FakeEngine::Control control;
  control.hold_load = control.long_calls = true;
  std::vector<HostedShard> shards;
  HostedShard& shard = shards.emplace_back();
  shard.engine = std::make_unique<FakeEngine>(control, 0);
  shard.listen.socket_prefix = folder / "shard";
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
  ::alarm(kSeconds);
  ::kill(::getpid(), SIGTERM);  // RunShards finds it when it waits
  std::exit(RunShards(std::move(shards), Notifier()));
}

TEST(RunShardsTest, ALongCallDoesNotDelayTheEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(StopWhileLoading(), testing::ExitedWithCode(0), "is in a long call");
}

}  // namespace
}  // namespace penstock::shard
