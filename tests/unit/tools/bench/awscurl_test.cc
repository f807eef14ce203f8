#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "common/status.h"
#include "tools/bench/awscurl/answer_text.h"
#include "tools/bench/awscurl/options.h"
#include "tools/bench/awscurl/result.h"

namespace penstock::bench::awscurl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(AwscurlOptions, TakesTheFoundingDocumentsLine) {
  const auto options =
      ParseOptions({"-c", "64", "-N", "3", "-X", "POST", "http://127.0.0.1:8080/invocations",
                    "--connect-timeout", "60", "-H", "Content-type: application/json", "-d",
                    "{\"inputs\":\"a\"}", "-t", "-o", "output-test.txt"},
                   "/models/m");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->clients, 64u);
  EXPECT_EQ(options->repeat, 3u);
  EXPECT_EQ(options->server.HostHeader() + options->server.target, "127.0.0.1:8080/invocations");
  EXPECT_FALSE(options->insecure);
  EXPECT_EQ(options->timeout, std::chrono::seconds(60));
  EXPECT_THAT(options->headers, ElementsAre(Pair("Content-type", "application/json")));
  EXPECT_THAT(options->bodies, ElementsAre("{\"inputs\":\"a\"}"));
  EXPECT_TRUE(options->count_tokens);
  EXPECT_EQ(options->output, "output-test.txt");
  EXPECT_EQ(options->tokenizer, "/models/m");
}

TEST(AwscurlOptions, TakesAnHttpsServer) {
  const auto options = ParseOptions({"-k", "https://h/x?y=1"}, "");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->server.tls);
  EXPECT_EQ(options->server.HostHeader() + options->server.target, "h:443/x?y=1");
  EXPECT_TRUE(options->insecure);
}

TEST(AwscurlOptions, NamesUnsupportedOptions) {
  const auto error = [](const std::vector<std::string>& arguments) {
    return Message(ParseOptions(arguments, "").status());
  };
  EXPECT_EQ(error({"-n", "sagemaker", "http://h/"}),
            "--preset awscurl: -n: is not offered: requests are not signed");
  EXPECT_THAT(error({"--delay", "1", "http://h/"}), HasSubstr("all clients start at once"));
  EXPECT_THAT(error({"--foo", "1", "http://h/"}), HasSubstr("--foo: unknown option; --help"));
  EXPECT_THAT(error({"-c", "0", "http://h/"}), HasSubstr("-c: 0 must be an integer from 1"));
  EXPECT_THAT(error({"-c"}), HasSubstr("-c: a value is missing"));
  EXPECT_THAT(error({"ftp://h/"}), HasSubstr("URL: ftp://h/ must be http://"));
  EXPECT_THAT(error({"-c", "2"}), HasSubstr("URL: is missing"));
}

TEST(AwscurlAnswerText, FindsTheTextOfEachFormatter) {
  EXPECT_THAT(*AnswerTexts("application/json", R"({"generated_text":"a b"})"), ElementsAre("a b"));
  EXPECT_THAT(
      *AnswerTexts("application/json", R"([{"generated_text":"a"},{"generated_text":"b"}])"),
      ElementsAre("a", "b"));
  EXPECT_THAT(*AnswerTexts("application/jsonlines",
                           "{\"token\":{\"text\":\"a\"}}\n{\"token\":{\"text\":\" b\"},"
                           "\"generated_text\":\"a b\"}\n"),
              ElementsAre("a b"));
  EXPECT_THAT(
      *AnswerTexts("text/event-stream",
                   "data: {\"token\":{\"text\":\"a\"}}\n\ndata: {\"token\":{\"text\":\"b\"}}\n\n"),
      ElementsAre("a", "b"));
  EXPECT_FALSE(AnswerTexts("application/json", "oops"));
  EXPECT_EQ(CountWords(" one two\nthree "), 3u);
}

// awscurl's estimates, and the rates by the clock.
TEST(AwscurlResult, FollowsAwscurlsFormulas) {
  std::vector<Reply> replies;
  for (const double latency : {400.0, 100.0, 300.0, 200.0}) {
    replies.push_back({.latency_ms = latency, .first_byte_ms = latency / 10, .tokens = 5});
  }
  replies.push_back({.failed = true, .error = "503 busy"});
  const Result result = MakeResult(replies, 2, 2000, "m");
  EXPECT_DOUBLE_EQ(result.tps, 4 / 1.0 * 2);
  EXPECT_DOUBLE_EQ(result.token_throughput, 20 / 1.0 * 2);
  EXPECT_DOUBLE_EQ(result.average_token_ms, 1000.0 * 2 / 20);
  EXPECT_DOUBLE_EQ(result.wall_tps, 2);
  EXPECT_DOUBLE_EQ(result.p50_ms, 300);
  EXPECT_DOUBLE_EQ(result.p90_ms, 400);
  EXPECT_DOUBLE_EQ(result.first_byte_ms, 25);
  EXPECT_DOUBLE_EQ(result.ErrorRate(), 20);
  const std::string text = ToText(result);
  for (const char* line :
       {"Total time: 2000.00 ms.\n", "Non 200 responses: 1, error rate: 20.00\n",
        "Concurrent clients: 2\n", "Total requests: 5\n", "TPS: 8.00/s\n",
        "Average Token Latency: 100.00 ms.\n", "Average Latency: 250.00 ms.\n", "P50: 300.00 ms.\n",
        "Total token: 20\n", "token/req: 4\n", "token/s: 40.00/s\n",
        "Time to first byte: 25.00 ms.\n", "First error: 503 busy\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const auto json = boost::json::parse(ToJson(result)).as_object();
  EXPECT_EQ(json.at("failedRequests").to_number<int>(), 1);
  EXPECT_EQ(json.at("tokenPerRequest").to_number<int>(), 4);
}

}  // namespace
}  // namespace penstock::bench::awscurl
