#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "tools/bench/request_body.h"
#include "tools/bench/server_stream.h"
#include "tools/bench/sse_reader.h"
#include "tools/bench/stats.h"

namespace penstock::bench {
namespace {

using testing::ElementsAre;

std::vector<std::string> ReadInPieces(const std::string& text, std::size_t size) {
  SseReader reader;
  std::vector<std::string> events;
  for (std::size_t i = 0; i < text.size(); i += size) {
    reader.Feed(text.substr(i, size), [&](std::string_view data) { events.emplace_back(data); });
  }
  return events;
}

TEST(SseReader, AnyDivisionGivesTheSameEvents) {
  const std::string text = ":\n\ndata: one\n\nevent: x\ndata:two\r\n\r\ndata: [DONE]\n\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    EXPECT_THAT(ReadInPieces(text, size), ElementsAre("one", "two", "[DONE]"));
  }
}

TEST(ServerUrl, HasTheDefaultPortOfItsScheme) {
  EXPECT_EQ(ParseServerUrl("http://h")->port, 80);
  EXPECT_FALSE(ParseServerUrl("http://h")->tls);
  EXPECT_EQ(ParseServerUrl("https://h")->port, 443);
  EXPECT_TRUE(ParseServerUrl("https://h")->tls);
  EXPECT_EQ(ParseServerUrl("https://h:8443/a?b")->target, "/a?b");
  EXPECT_EQ(ParseServerUrl("http://[::1]:3000")->host, "::1");
  EXPECT_EQ(ParseServerUrl("http://[::1]:3000")->HostHeader(), "[::1]:3000");
  for (const char* text : {"h:80", "ftp://h", "http://", ""}) {
    EXPECT_FALSE(ParseServerUrl(text)) << text;
  }
}

TEST(Events, TgiTokensErrorsAndTheFinalCount) {
  EXPECT_TRUE(ReadEvent(Api::kTgi, R"({"token":{"id":1},"details":null})").is_token);
  const auto last = ReadEvent(Api::kTgi, R"({"token":{"id":1},"details":{"generated_tokens":7}})");
  EXPECT_TRUE(last.is_done);
  EXPECT_EQ(last.total_tokens, 7u);
  EXPECT_TRUE(ReadEvent(Api::kTgi, R"({"error":"x","error_type":"y"})").is_error);
  EXPECT_TRUE(ReadEvent(Api::kTgi, "no json").is_error);
}

TEST(Events, OpenAiTokensUsageAndDone) {
  EXPECT_TRUE(ReadEvent(Api::kOpenAiChat, R"({"choices":[{"delta":{"content":"a"}}]})").is_token);
  EXPECT_TRUE(ReadEvent(Api::kOpenAiCompletions, R"({"choices":[{"text":"a"}]})").is_token);
  EXPECT_FALSE(
      ReadEvent(Api::kOpenAiChat, R"({"choices":[{"delta":{"role":"assistant"}}]})").is_token);
  EXPECT_EQ(
      ReadEvent(Api::kOpenAiChat, R"({"choices":[],"usage":{"completion_tokens":3}})").total_tokens,
      3u);
  EXPECT_TRUE(ReadEvent(Api::kOpenAiChat, "[DONE]").is_done);
}

TEST(Bodies, EscapeThePromptAndAskForCounts) {
  LoadOptions config;
  const auto tgi = boost::json::parse(RequestBody(config, "a \"b\"\n"));
  EXPECT_EQ(tgi.at("inputs").as_string(), "a \"b\"\n");
  EXPECT_TRUE(tgi.at("parameters").at("details").as_bool());
  config.api = Api::kOpenAiChat;
  const auto chat = boost::json::parse(RequestBody(config, "hi"));
  EXPECT_EQ(chat.at("messages").at(0).at("content").as_string(), "hi");
  EXPECT_TRUE(chat.at("stream_options").at("include_usage").as_bool());
}

TEST(Percentiles, AreNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = Summarise(values);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p90, 90);
  EXPECT_EQ(p.p99, 99);
  EXPECT_EQ(p.max, 100);
  EXPECT_EQ(Summarise({}).p50, 0);
  EXPECT_EQ(Summarise({3}).p99, 3);
}

TEST(Report, CountsFailuresApartAndMeasuresFromTheArrival) {
  const auto start = Clock::now();
  using std::chrono::milliseconds;
  RequestRecord good{
      start, {start + milliseconds(10), start + milliseconds(15)}, start + milliseconds(20), 2, ""};
  RequestRecord bad{start, {}, start, 0, "429 busy"};
  const RunReport report = MakeReport({good, bad}, 2.0, 0.5);
  EXPECT_EQ(report.failures, 1u);
  EXPECT_EQ(report.first_error, "429 busy");
  EXPECT_DOUBLE_EQ(report.ttft.p50, 10);
  EXPECT_DOUBLE_EQ(report.inter_token.p50, 5);
  EXPECT_DOUBLE_EQ(report.end_to_end.p50, 20);
  const auto json = boost::json::parse(ToJson(LoadOptions{}, report));
  EXPECT_EQ(json.at("tokens_per_second").as_double(), 1.0);
}

}  // namespace
}  // namespace penstock::bench
