#include "tools/plan/group_type.h"

#include <gtest/gtest.h>

#include <absl/strings/str_cat.h>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "common/fnv.h"
#include "common/status.h"
#include "tools/plan/step_table.h"

namespace penstock::plan {
namespace {

constexpr std::uint32_t kSlots = 128;

GroupTypes Groups(const std::vector<MachineType>& machines, const std::vector<int>& ranks,
                  const char* model = "llama-3-8b") {
  auto made = MakeGroupTypes(*ReadPlanModel(model), machines, ranks, kSlots);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : GroupTypes{};
}

MachineType Named(const char* model) {
  MachineType machine;
  machine.name = "gpu";
  machine.model = model;
  machine.count = 8;
  return machine;
}

Duration Decode(const GroupType& group, std::uint64_t rows) {
  scheduler::StepShape step;
  step.AddDecode(1024, rows);
  return group.step_time(step);
}

// A table of a shard, with the checksum that it writes.
std::string WriteTable(const std::string& rows) {
  std::string text = "penstock-warmup 3\nan identity\n" + rows;
  text += absl::StrCat("end ", absl::Hex(Fnv1a(text), absl::kZeroPad16), "\n");
  const std::string path = ::testing::TempDir() + "plan_table.warmup";
  std::ofstream(path) << text;
  return path;
}

constexpr char kRows[] =
    "1 0 0 1000000\n64 0 0 2000000\n512 0 0 9000000\n0 1 128 1000000\n0 32 1024 3000000\n"
    "0 128 1024 8000000\n";

TEST(GroupType, TheKvCacheIsWhatTheWeightsLeave) {
  // The table of KV capacities in tokens: 400 k, 923 k for Llama-3-8B on 80 GB.
  const std::vector<MachineType> machines = {Named("h100")};
  const GroupTypes made = Groups(machines, {1, 2});
  ASSERT_EQ(made.types.size(), 2u);
  EXPECT_NEAR(made.types[0].capacity.blocks * 16.0, 400e3, 3e3);
  EXPECT_NEAR(made.types[1].capacity.blocks * 16.0, 923e3, 10e3);
  EXPECT_EQ(made.types[0].MostGroups(), 8u);
  EXPECT_EQ(made.types[1].MostGroups(), 4u);
}

TEST(GroupType, ANamedShapeHasTheFittedStepTimes) {
  const std::vector<MachineType> machines = {Named("h100")};
  const GroupTypes made = Groups(machines, {1});
  EXPECT_EQ(made.types[0].source, "h100-llama-3-8b-tp1");
  const std::chrono::duration<double, std::milli> decode = Decode(made.types[0], 32);
  EXPECT_NEAR(decode.count(), 8.86, 0.02);
}

TEST(GroupType, SaysWhatIsNotPossibleAndWhy) {
  const std::vector<MachineType> machines = {Named("a100")};
  const GroupTypes made = Groups(machines, {1, 3, 4}, "llama-3-70b");
  ASSERT_EQ(made.types.size(), 1u);
  EXPECT_EQ(made.types[0].ranks, 4);
  ASSERT_EQ(made.left_out.size(), 2u);
  EXPECT_EQ(made.left_out[0], "gpu, 1 rank: the weights leave no memory for the KV cache");
  EXPECT_EQ(made.left_out[1], "gpu, 3 ranks: the heads of the model cannot be divided");
}

TEST(GroupType, AMeasuredTableIsForItsNumberOfRanks) {
  MachineType cpu;
  cpu.name = "cpu";
  cpu.count = 4;
  cpu.kv_memory = 4e9;
  cpu.tables[1] = WriteTable(kRows);
  const std::vector<MachineType> machines = {cpu};
  const GroupTypes made = Groups(machines, {1, 2});
  ASSERT_EQ(made.types.size(), 1u);
  EXPECT_EQ(made.types[0].capacity.blocks, 4000000000u / (131072 * 16));
  EXPECT_EQ(made.left_out[0], "cpu, 2 ranks: no table for this number of ranks");
}

TEST(GroupType, AnInterconnectDividesTheTableAndAddsTwoSumsOfEachLayer) {
  MachineType cpu;
  cpu.name = "cpu";
  cpu.count = 4;
  cpu.kv_memory = 4e9;
  cpu.tables[1] = WriteTable(kRows);
  cpu.interconnect = Interconnect{std::chrono::microseconds(10), 4096e6};
  const std::vector<MachineType> machines = {cpu};
  const GroupTypes made = Groups(machines, {1, 2});
  ASSERT_EQ(made.types.size(), 2u);
  // 64 sums of 10 us, and of 32 rows of 8 KiB at 4.096 GB/s.
  const auto sums = std::chrono::microseconds(64 * (10 + 64));
  EXPECT_NEAR(static_cast<double>(Decode(made.types[1], 32).count()),
              static_cast<double>(Decode(made.types[0], 32).count()) / 2 +
                  static_cast<double>(std::chrono::nanoseconds(sums).count()),
              2);
}

TEST(StepTable, ADamagedOrForeignFileIsRefused) {
  const std::string path = WriteTable("1 0 0 1000000\n1 0 none 1\n");
  EXPECT_EQ(Message(ReadStepTable(path).status()),
            path + ":4: must be `PREFILL DECODES CONTEXT NANOSECONDS`. Given: `1 0 none 1`");
  std::ofstream(path) << "penstock-warmup 3\nidentity\n1 0 0 1\nend 00\n";
  EXPECT_EQ(Message(ReadStepTable(path).status()),
            path + ": is damaged; its checksum does not match");
  std::ofstream(path) << "hello\n";
  EXPECT_EQ(Message(ReadStepTable(path).status()),
            path + ":1: must be a warm-up table of a shard, or a log of --record");
}

TEST(GroupType, ATableWithoutMemoryIsAnError) {
  MachineType cpu;
  cpu.name = "cpu";
  cpu.where = "m.yaml:1";
  cpu.tables[1] = WriteTable(kRows);
  const auto made = MakeGroupTypes(*ReadPlanModel("llama-3-8b"), {cpu}, {1}, kSlots);
  EXPECT_EQ(Message(made.status()).substr(0, 56),
            "m.yaml:1: cpu must have `kv_memory` or `memory`: a warm-");
}

}  // namespace
}  // namespace penstock::plan
