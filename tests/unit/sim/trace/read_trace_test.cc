#include "sim/trace/read_trace.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <sstream>

#include "tests/unit/text/shared_data.h"

namespace penstock::sim {
namespace {

absl::StatusOr<Trace> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTrace(in, "trace");
}

std::string ErrorOf(const std::string& text) {
  const auto trace = Read(text);
  return trace.ok() ? "" : std::string(trace.status().message());
}

constexpr char kAzure[] =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 23:59:59.9999999,374,44\r\n"
    "2023-11-17 00:00:00.0000001,396,109";

TEST(ReadTrace, AzureTimesHaveHundredNanosecondsAndLinesEndInCrLf) {
  const auto trace = Read(kAzure);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->requests[0].arrival, Duration(0));
  EXPECT_EQ(trace->requests[1].arrival, Duration(200));
  EXPECT_EQ(trace->requests[1].prompt_tokens, 396u);
  EXPECT_EQ(trace->requests[1].output_tokens, 109u);
}

TEST(ReadTrace, LengthsWithoutTimesArriveTogether) {
  const auto sharegpt = Read("TIMESTAMP,ContextTokens,GeneratedTokens\nnone,42,285\nnone,19,82\n");
  ASSERT_TRUE(sharegpt.ok()) << sharegpt.status();
  EXPECT_EQ(sharegpt->requests[1].arrival, Duration(0));
  EXPECT_EQ(sharegpt->requests[0].output_tokens, 285u);
  const auto arxiv =
      Read("num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.85\n");
  ASSERT_TRUE(arxiv.ok()) << arxiv.status();
  EXPECT_EQ(arxiv->requests[0].prompt_tokens, 3772u);
}

TEST(ReadTrace, MooncakeRowsShareBlocks) {
  const auto trace =
      Read(R"({"timestamp": 5, "input_length": 513, "output_length": 7, "hash_ids": [0, 1]})"
           "\n"
           R"({"timestamp": 9, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2]})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests[1].arrival, std::chrono::milliseconds(4));
  const std::vector<TokenId> first = MakePrompt(*trace, 0);
  const std::vector<TokenId> second = MakePrompt(*trace, 1);
  ASSERT_EQ(first.size(), 513u);
  ASSERT_EQ(second.size(), 1024u);
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 512, second.begin()));
  EXPECT_NE(first[512], second[512]);
}

TEST(ReadTrace, PromptsWithoutBlocksShareNothing) {
  const auto trace = Read("TIMESTAMP,ContextTokens,GeneratedTokens\nnone,33,2\nnone,33,2\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(MakePrompt(*trace, 0).size(), 33u);
  EXPECT_NE(MakePrompt(*trace, 0)[0], MakePrompt(*trace, 1)[0]);
  EXPECT_EQ(MakePrompt(*trace, 0), MakePrompt(*trace, 0));
}

TEST(ReadTrace, ErrorsNameFileLineFieldAndLimit) {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  EXPECT_EQ(ErrorOf(header + "none,0,1\n"),
            "`trace` line 2: `prompt tokens` must be a whole number of 1 to 1048576. Given: `0`");
  EXPECT_EQ(ErrorOf(header + "none,1,9999999\n"),
            "`trace` line 2: `output tokens` must be a whole number of 1 to 1048576. Given: "
            "`9999999`");
  EXPECT_EQ(ErrorOf(header + "none,1\n"), "`trace` line 2: a row must have 3 cells. Given: 2");
  EXPECT_EQ(ErrorOf(header + "2023-13-01 00:00:00,1,1\n"),
            "`trace` line 2: `TIMESTAMP` must be of the form 2023-11-16 18:15:46.6805900. Given: "
            "`2023-13-01 00:00:00`");
  EXPECT_EQ(ErrorOf("a,b\n"),
            "`trace` line 1: neither a Mooncake row nor a header with "
            "ContextTokens,GeneratedTokens or num_prefill_tokens,num_decode_tokens");
  EXPECT_EQ(ErrorOf("{\"timestamp\": 1"), "`trace` line 1: a row must be one JSON object");
  EXPECT_EQ(
      ErrorOf(R"({"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [1]})"),
      "`trace` line 1: `hash_ids` must have 2 entries (one per 512 tokens). Given: 1");
  EXPECT_EQ(ErrorOf(""), "`trace` line 0: the trace holds no request");
  EXPECT_EQ(ReadTrace("/nowhere/trace").status().message(), "cannot open `/nowhere/trace`");
}

TEST(ReadTrace, PublicTracesHaveTheirKnownNumbers) {
  PENSTOCK_SHARED_OR_SKIP(azure, "traces/azure2023_conv.csv");
  const auto conversation = ReadTrace(azure);
  ASSERT_TRUE(conversation.ok()) << conversation.status();
  EXPECT_EQ(conversation->requests.size(), 19366u);
  EXPECT_EQ(std::chrono::floor<std::chrono::seconds>(conversation->requests.back().arrival),
            std::chrono::seconds(3501));

  PENSTOCK_SHARED_OR_SKIP(sharegpt, "traces/lengths_sharegpt.csv");
  const auto lengths = ReadTrace(sharegpt);
  ASSERT_TRUE(lengths.ok()) << lengths.status();
  EXPECT_EQ(lengths->requests.size(), 58787u);

  PENSTOCK_SHARED_OR_SKIP(mooncake, "traces/mooncake_conversation_trace.jsonl");
  const auto blocks = ReadTrace(mooncake);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_EQ(blocks->requests.size(), 12031u);
  std::size_t references = 0;
  std::set<std::uint32_t> distinct;
  for (const TraceRequest& request : blocks->requests) {
    references += request.blocks.size();
    distinct.insert(request.blocks.begin(), request.blocks.end());
  }
  EXPECT_EQ(references, 288500u);
  EXPECT_EQ(references - distinct.size(), 105710u);  // hits of an infinite cache
}

}  // namespace
}  // namespace penstock::sim
