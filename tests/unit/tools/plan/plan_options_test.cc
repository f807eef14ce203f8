#include "tools/plan/plan_options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/plan/launcher_config.h"

namespace penstock::plan {
namespace {

absl::StatusOr<PlanOptions> Read(std::vector<const char*> more) {
  static const std::string path = [] {
    const std::string file = ::testing::TempDir() + "plan_machines.yaml";
    std::ofstream(file) << "gpu: {model: h100, count: 8, per_host: 4, price: 2}\n";
    return file;
  }();
  std::vector<const char*> arguments = {"penstock-plan", "--model",    "llama-3-8b", "--machines",
                                        path.c_str(),    "--requests", "20"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return ReadCommandLine("penstock-plan", static_cast<int>(arguments.size()), arguments.data())
      .options;
}

TEST(PlanOptions, AnObjectiveForLatencyIsNeeded) {
  EXPECT_EQ(Message(Read({}).status()),
            "give an objective for latency: --slo-ttft, --slo-inter-token or --slo-gap");
}

TEST(PlanOptions, ReadsTheObjective) {
  const auto options = Read({"--slo-ttft", "400ms", "--percentile", "99", "--objective", "cost",
                             "--rate", "3", "--orders", "fcfs,longest-prefix"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->goal.slo.ttft, std::chrono::milliseconds(400));
  EXPECT_DOUBLE_EQ(options->goal.share, 0.99);
  EXPECT_EQ(options->goal.demand, 3);
  EXPECT_EQ(options->space.orders.size(), 2u);
}

TEST(PlanOptions, AnObjectiveNeedsThePricesOrWattsOfAllMachines) {
  const auto options = Read({"--slo-ttft", "1s", "--objective", "power"});
  EXPECT_NE(Message(options.status()).find("gpu.watts must be above 0 with --objective power"),
            std::string::npos)
      << options.status();
}

TEST(PlanOptions, RefusesUnknownPoliciesAndRatesWithoutUse) {
  EXPECT_EQ(Message(Read({"--slo-ttft", "1s", "--orders", "lifo"}).status()),
            "--orders lifo: must be of fcfs, longest-prefix, shortest-predicted");
  EXPECT_EQ(Message(Read({"--slo-ttft", "1s", "--rate", "3"}).status()),
            "--rate 3: must be 0 with --objective throughput, which looks for the highest rate");
}

TEST(LauncherConfig, AHostStartsItsOwnGroups) {
  const auto options = Read({"--slo-ttft", "1s"});
  ASSERT_TRUE(options.ok()) << options.status();
  GroupType type{&options->machines[0], 2};
  const std::string text = LauncherConfig(*options, {{&type, 3, 1024}});
  EXPECT_NE(text.find("# 3 groups in all: start this on 2 hosts"), std::string::npos) << text;
  EXPECT_NE(text.find("num_shard: 2\nnum_replicas: 2\nmax_step_tokens: 1024\norder: fcfs\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace penstock::plan
