#include "tools/replay/trace_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::replay {
namespace {

absl::StatusOr<TraceOptions> Read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "trace");
  return ReadTraceCommandLine("penstock-replay trace", static_cast<int>(arguments.size()),
                              arguments.data())
      .options;
}

std::string ErrorOf(std::vector<const char*> arguments) {
  const auto options = Read(std::move(arguments));
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(TraceOptions, PoliciesAndSizesReachTheCore) {
  const auto options =
      Read({"uniform", "--requests", "7", "--prompt-tokens", "5", "--output-tokens=2-3",
            "--batching", "static", "--prefill", "whole", "--max-step-tokens", "64", "--blocks",
            "99", "--num-replicas", "3", "--slo-gap", "30ms", "--padded"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->trace.requests.size(), 7u);
  EXPECT_EQ(options->trace.requests[6].prompt_tokens, 5u);
  EXPECT_EQ(options->fleet.config.batching, scheduler::Batching::kStatic);
  EXPECT_EQ(options->fleet.config.prefill, scheduler::Prefill::kWhole);
  EXPECT_EQ(options->fleet.config.max_step_tokens, 64u);
  EXPECT_EQ(options->fleet.capacity.blocks, 99u);
  EXPECT_EQ(options->fleet.groups, 3u);
  EXPECT_TRUE(options->fleet.padded_batches);
  EXPECT_EQ(options->objective.worst_gap, std::chrono::milliseconds(30));
  EXPECT_FALSE(options->objective.ttft);
  EXPECT_EQ(options->trace.requests[6].arrival, Duration(0));  // no rate: all at once
  EXPECT_GT(AtRate(*options, 10).requests[6].arrival, Duration(0));
}

TEST(TraceOptions, ErrorsNameTheOption) {
  EXPECT_EQ(ErrorOf({}), "give a trace file, or the word uniform, after the command");
  EXPECT_EQ(ErrorOf({"uniform", "--prompt-tokens", "9-3"}),
            "--prompt-tokens 9-3: must be LOW-HIGH with 1 <= LOW <= HIGH <= 1048576");
  EXPECT_EQ(ErrorOf({"uniform", "--machine", "abacus"}).substr(0, 35),
            "--machine abacus: must be one of a1");
  EXPECT_EQ(ErrorOf({"/nowhere/t.csv"}), "cannot open `/nowhere/t.csv`");
}

}  // namespace
}  // namespace penstock::replay
