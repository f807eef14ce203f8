#include "launcher/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace penstock::launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

const Machine kMachine = {.cores = 6, .program_dir = "/opt/bin", .socket_prefix = "/run/x/shard"};

options::Values ValuesOf(std::vector<std::string> arguments) {
  arguments.push_back("--model-id=m");
  auto values = options::Parse(options::ProgramFor(options::kLauncher), {.arguments = arguments});
  EXPECT_TRUE(values.ok()) << values.status();
  return *std::move(values);
}

LaunchPlan PlanOf(std::vector<std::string> arguments) {
  auto plan = MakeLaunchPlan(ValuesOf(std::move(arguments)), kMachine);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(LaunchPlanTest, OneProcessPerRankAndARouter) {
  const LaunchPlan plan = PlanOf({"--num-shard=2", "--dtype=f32", "--port=0"});
  ASSERT_EQ(plan.shards.size(), 2u);
  EXPECT_EQ(plan.shards[1].name, "shard-1");
  EXPECT_EQ(plan.shards[1].rank, 1);
  EXPECT_EQ(plan.shards[1].program, "/opt/bin/penstock-shard");
  EXPECT_THAT(
      plan.shards[1].arguments,
      UnorderedElementsAre("--model-id=m", "--dtype=float32", "--cpu-threads=3", "--rank=1",
                           "--world-size=2", "--local-ranks=2", "--shard-uds-path=/run/x/shard"));
  EXPECT_EQ(plan.router.program, "/opt/bin/penstock-router");
  EXPECT_THAT(plan.router.arguments,
              UnorderedElementsAre("--model-id=m", "--port=0", "--num-shard=2",
                                   "--shard-uds-path=/run/x/shard"));
}

TEST(LaunchPlanTest, ChildrenUnderstandTheirCommandLines) {
  const LaunchPlan plan = PlanOf({"--num-shard=4", "--kv-cache-memory=50%", "--log-level=debug"});
  auto shard =
      options::Parse(options::ProgramFor(options::kShard), {.arguments = plan.shards[3].arguments});
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_DOUBLE_EQ(shard->FindMemory("kv-cache-memory")->share, 0.125);
  EXPECT_EQ(shard->GetInt("rank"), 3);
  auto router =
      options::Parse(options::ProgramFor(options::kRouter), {.arguments = plan.router.arguments});
  ASSERT_TRUE(router.ok()) << router.status();
  EXPECT_EQ(router->GetInt("num-shard"), 4);
}

TEST(LaunchPlanTest, DividesMemoryAndThreadsAmongRanks) {
  const LaunchPlan bytes = PlanOf({"--num-shard=4", "--kv-cache-memory=1MiB", "--cpu-threads=2"});
  for (const ChildSpec& shard : bytes.shards) {
    EXPECT_THAT(shard.arguments, Contains("--kv-cache-memory=262144"));
    EXPECT_THAT(shard.arguments, Contains("--cpu-threads=1"));
  }
  const LaunchPlan automatic = PlanOf({"--num-shard=4"});
  EXPECT_THAT(automatic.shards[0].arguments, Not(Contains(StartsWith("--kv-cache-memory"))));
  EXPECT_THAT(automatic.shards[0].arguments, Contains("--local-ranks=4"));
}

TEST(LaunchPlanTest, APartBelowTheLimitIsAnError) {
  auto plan = MakeLaunchPlan(ValuesOf({"--num-shard=4", "--kv-cache-memory=2KiB"}), kMachine);
  EXPECT_THAT(Message(plan.status()), HasSubstr("--kv-cache-memory 2KiB: divided among 4 ranks"));
}

TEST(LaunchPlanTest, ReplicasShareTheMachineAndHaveTheirOwnSockets) {
  const LaunchPlan plan = PlanOf({"--num-replicas=2", "--num-shard=2"});
  ASSERT_EQ(plan.shards.size(), 4u);
  EXPECT_EQ(plan.shards[3].name, "shard-1.1");
  EXPECT_EQ(plan.shards[3].group, 1);
  EXPECT_THAT(plan.shards[3].arguments,
              ElementsAre("--model-id=m", "--cpu-threads=1", "--group=1", "--rank=1",
                          "--world-size=2", "--local-ranks=4", "--shard-uds-path=/run/x/shard"));
  EXPECT_THAT(plan.router.arguments,
              ElementsAre("--model-id=m", "--num-shard=2", "--num-replicas=2",
                          "--shard-uds-path=/run/x/shard"));
  EXPECT_THAT(plan.shards[3].environment, Not(Contains(StartsWith("CUDA_VISIBLE_DEVICES"))));
}

TEST(LaunchPlanTest, EachRankGetsItsOwnGpu) {
  Machine machine = kMachine;
  machine.gpus = {"4", "5", "GPU-6", "7"};
  machine.cuda_shard = true;
  auto plan = MakeLaunchPlan(
      ValuesOf({"--num-replicas=2", "--num-shard=2", "--kv-cache-memory=4KiB"}), machine);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shards[0].program, "/opt/bin/penstock-shard-cuda");
  EXPECT_THAT(plan->shards[0].arguments, Contains("--kv-cache-memory=4096"));
  EXPECT_THAT(plan->shards[0].environment, Contains("CUDA_VISIBLE_DEVICES=4"));
  EXPECT_THAT(plan->shards[2].environment, Contains("CUDA_VISIBLE_DEVICES=GPU-6"));
  const auto cpu = MakeLaunchPlan(ValuesOf({"--device=cpu"}), machine);
  EXPECT_EQ(cpu->shards[0].program, "/opt/bin/penstock-shard");
  EXPECT_THAT(cpu->shards[0].environment, Not(Contains(StartsWith("CUDA_VISIBLE_DEVICES"))));
  const auto few = MakeLaunchPlan(ValuesOf({"--num-shard=5", "--device=cuda"}), machine);
  EXPECT_THAT(Message(few.status()),
              HasSubstr("--num-replicas times --num-shard 5: must be at most 4, "));
  // With auto too few GPUs are no error: the CPU serves.
  const auto fewer = MakeLaunchPlan(ValuesOf({"--num-shard=5"}), machine);
  EXPECT_EQ(fewer->shards[0].program, "/opt/bin/penstock-shard");
}

TEST(LaunchPlanTest, BackendReferenceHasAProgramOfItsOwn) {
  Machine machine = kMachine;
  const auto program = [&machine](std::vector<std::string> arguments) {
    return MakeLaunchPlan(ValuesOf(std::move(arguments)), machine)->shards[0].program;
  };
  EXPECT_EQ(program({"--backend=reference"}), "/opt/bin/penstock-shard-torch");
  EXPECT_EQ(program({"--dtype=float16"}), "/opt/bin/penstock-shard-torch");
  EXPECT_EQ(program({"--dtype=float16", "--backend=cpu"}), "/opt/bin/penstock-shard");
  EXPECT_EQ(program({"--backend=reference", "--shard-program=/x/shard"}), "/x/shard");
  machine.has_kernels = false;
  EXPECT_EQ(program({}), "/opt/bin/penstock-shard-torch");
  machine.gpus = {"0"};
  machine.cuda_shard = true;
  EXPECT_EQ(program({"--backend=reference", "--device=cuda"}), "/opt/bin/penstock-shard-cuda");
}

TEST(LaunchPlanTest, EngineTransformersRunsInTheProgramForCpus) {
  Machine machine = kMachine;
  machine.gpus = {"0"};
  machine.cuda_shard = machine.torch_shard = true;
  machine.has_kernels = false;
  const options::Values values = ValuesOf({"--engine=transformers", "--python=/opt/python"});
  const auto plan = MakeLaunchPlan(values, machine);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shards[0].program, "/opt/bin/penstock-shard");
  EXPECT_THAT(plan->shards[0].arguments, Contains("--engine=transformers"));
  EXPECT_THAT(plan->shards[0].arguments, Contains("--python=/opt/python"));
  EXPECT_THAT(plan->router.arguments, Contains("--engine=transformers"));
}

TEST(LaunchPlanTest, RanksMayShareGpusOnRequest) {
  Machine machine = kMachine;
  machine.gpus = {"3"};
  auto plan = MakeLaunchPlan(
      ValuesOf({"--num-shard=2", "--device=cuda", "--share-gpus", "--kv-cache-memory=4KiB"}),
      machine);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const ChildSpec& shard : plan->shards) {
    EXPECT_THAT(shard.environment, Contains("CUDA_VISIBLE_DEVICES=3"));
    EXPECT_THAT(shard.arguments, Contains("--kv-cache-memory=2048"));
  }
}

TEST(LaunchPlanTest, SimulatedShardsGetTheirOwnOptions) {
  const LaunchPlan plan = PlanOf({"--shard-program=build/bin/penstock-simshard", "--dtype=f32",
                                  "--step-time=100ms", "--kv-cache-memory=1MiB"});
  EXPECT_EQ(plan.shards[0].program, "build/bin/penstock-simshard");
  auto shard = options::Parse(options::ProgramFor(options::kSimshard),
                              {.arguments = plan.shards[0].arguments});
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(shard->GetDuration("step-time"), std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace penstock::launcher
