#include "router/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, EveryCounterWithoutLabelsIsThereFromTheStart) {
  const std::string text = Metrics("1.2.3").Render();
  EXPECT_THAT(text, HasSubstr("penstock_build_info{version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_requests_cancelled_total 0\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_queue_size 0\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_kv_blocks{state=\"retiring\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_plans_in_flight_max 0\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_generated_tokens_total 0\n"));
}

// An alert on a rate needs the 0 before the first span is lost.
TEST(Metrics, EveryOutcomeOfSpansAndReloadsIsThereFromTheStart) {
  const std::string text = Metrics("1.2.3").Render();
  for (const std::string outcome : {"sent", "dropped", "failed"}) {
    EXPECT_THAT(text, HasSubstr("penstock_otlp_spans_total{outcome=\"" + outcome + "\"} 0\n"));
  }
  for (const std::string file : {"api_keys", "certificate"}) {
    EXPECT_THAT(text,
                HasSubstr("penstock_reloads_total{file=\"" + file + "\",outcome=\"failed\"} 0\n"));
  }
}

TEST(Metrics, FilesOfAccessAreCountedAndTheCertificatesEndIsShown) {
  Metrics metrics;
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("\npenstock_tls_certificate_expiry")));
  metrics.access().CertificateEnds(1'900'000'000);
  metrics.access().Reloaded(AccessMetrics::File::kCertificate, true);
  metrics.access().Reloaded(AccessMetrics::File::kApiKeys, false);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("\npenstock_tls_certificate_expiry_timestamp_seconds 1900000000\n"));
  EXPECT_THAT(text, HasSubstr("{file=\"certificate\",outcome=\"done\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{file=\"api_keys\",outcome=\"failed\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{file=\"api_keys\",outcome=\"done\"} 0\n"));
}

TEST(Metrics, RequestOutcomesAreCountedByTheirLabels) {
  Metrics metrics;
  metrics.requests().Arrived("/generate");
  metrics.requests().Arrived("/generate");
  metrics.requests().Succeeded("length");
  metrics.requests().Failed("validation");
  metrics.requests().Cancelled();
  metrics.requests().UnknownKeys("tgi", 0);
  metrics.requests().UnknownKeys("openai", 3);
  metrics.http().Response("/generate", 422, "validation");
  metrics.http().Response("/generate", 200, "");
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("penstock_requests_total{route=\"/generate\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("penstock_requests_success_total{finish_reason=\"length\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("penstock_requests_failure_total{kind=\"validation\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("penstock_requests_cancelled_total 1\n"));
  EXPECT_THAT(text, HasSubstr("penstock_unknown_keys_total{dialect=\"openai\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("penstock_unknown_keys_total{dialect=\"tgi\"}")));
  EXPECT_THAT(text, HasSubstr("penstock_http_responses_total{code=\"422\",error=\"validation\","
                              "route=\"/generate\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("penstock_http_responses_total{code=\"200\",route=\"/generate\"} 1\n"));
}

TEST(Metrics, LatenciesAreSecondsAndTokensAreSummed) {
  Metrics metrics;
  metrics.requests().FirstToken(milliseconds(250));
  metrics.requests().InterToken(milliseconds(100));
  metrics.requests().InterToken(milliseconds(150));
  metrics.requests().Tokens(7, 2, 20);
  metrics.requests().Tokens(5, 0, 10);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("penstock_time_to_first_token_seconds_sum 0.25\n"));
  EXPECT_THAT(text, HasSubstr("penstock_inter_token_latency_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("penstock_inter_token_latency_seconds_sum 0.25\n"));
  EXPECT_THAT(text, HasSubstr("penstock_inter_token_latency_seconds_bucket{le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("penstock_inter_token_latency_seconds_bucket{le=\"0.25\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("penstock_prompt_tokens_total 12\n"));
  EXPECT_THAT(text, HasSubstr("penstock_cached_prompt_tokens_total 2\n"));
  EXPECT_THAT(text, HasSubstr("penstock_generated_tokens_total 30\n"));
  EXPECT_THAT(text, HasSubstr("penstock_request_generated_tokens_count 2\n"));
}

TEST(Metrics, ConcurrentCountsAreShownOnce) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&metrics] {
      for (int n = 0; n < 1000; ++n)
        metrics.requests().InterToken(std::chrono::seconds(n % 2 == 0 ? 1 : 5));
      metrics.Render();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("penstock_inter_token_latency_seconds_count 2000\n"));
  EXPECT_THAT(text, HasSubstr("penstock_inter_token_latency_seconds_sum 6000\n"));
  EXPECT_THAT(text, HasSubstr("penstock_inter_token_latency_seconds_bucket{le=\"1\"} 1000\n"));
}

TEST(Metrics, PrefixCacheUseIsSummed) {
  Metrics metrics;
  metrics.scheduler().PrefixCache(100, 64, 0);
  metrics.scheduler().PrefixCache(20, 0, 3);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("penstock_prefix_cache_lookup_tokens_total 120\n"));
  EXPECT_THAT(text, HasSubstr("penstock_prefix_cache_hit_tokens_total 64\n"));
  EXPECT_THAT(text, HasSubstr("penstock_prefix_cache_evicted_blocks_total 3\n"));
}

TEST(Metrics, PlansInFlightKeepsItsGreatestValue) {
  Metrics metrics;
  for (const std::uint64_t plans : {1, 2, 1, 0})
    metrics.groups().SetPlansInFlight(GroupId(0), plans);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("\npenstock_plans_in_flight 0\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_plans_in_flight_max 2\n"));
}

TEST(Metrics, ShowWhatATextKeepsInMemory) {
  Metrics metrics;
  metrics.groups().SetCacheSizes(GroupId(1), {{{4096, 2, 0}, {2048, 4, 512}}, 3, 900, 5, 7000});
  const std::string text = metrics.Render();
  for (const char* line : {"penstock_group_kv_bytes_per_token{group=\"1\",kv_group=\"0\"} 4096\n",
                           "penstock_group_kv_bytes_per_token{group=\"1\",kv_group=\"1\"} 2048\n",
                           "penstock_group_kv_layers{group=\"1\",kv_group=\"1\"} 4\n",
                           "penstock_group_kv_window{group=\"1\",kv_group=\"1\"} 512\n",
                           "penstock_group_state_layers{group=\"1\"} 3\n",
                           "penstock_group_state_bytes_per_sequence{group=\"1\"} 900\n",
                           "penstock_group_state_snapshots{group=\"1\"} 5\n",
                           "penstock_group_kv_cache_bytes{group=\"1\"} 7000\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Metrics, CountsFromManyThreadsAddUp) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics] {
      for (int i = 0; i < 1000; ++i) {
        metrics.groups().ExecuteMessage(GroupMetrics::Direction::kPlan, GroupId(0), 0);
        metrics.groups().ExecuteMessage(GroupMetrics::Direction::kResult, GroupId(3), 1);
        metrics.http().ConnectionOpened();
        metrics.http().ConnectionClosed();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.Render();
  EXPECT_THAT(
      text,
      HasSubstr(
          "penstock_execute_messages_total{direction=\"plan\",group=\"0\",rank=\"0\"} 4000\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "penstock_execute_messages_total{direction=\"result\",group=\"3\",rank=\"1\"} 4000\n"));
  EXPECT_THAT(text, HasSubstr("penstock_http_connections 0\n"));
}

TEST(Metrics, TgisNamesCountTheSameEventsOnce) {
  Metrics metrics;
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("tgi_")));
  metrics.AddTgiNames(100, 200, 16, false);
  metrics.requests().Arrived("/generate");
  metrics.requests().Succeeded("length");
  metrics.requests().Failed("overloaded");
  metrics.requests().Tokens(7, 0, 20);
  metrics.requests().Times(milliseconds(1), milliseconds(2), milliseconds(400), 20);
  metrics.scheduler().SetQueue(3, 5);
  metrics.scheduler().SetBlocks({.free = 10, .used = 2, .cached = 0, .retiring = 1});
  metrics.steps().Step(milliseconds(5), 4, 0);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("\ntgi_request_count 1\n"));
  EXPECT_THAT(text, HasSubstr("\ntgi_request_success 1\n"));
  EXPECT_THAT(text, HasSubstr("tgi_request_failure{err=\"overloaded\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ntgi_request_input_length_sum 7\n"));
  EXPECT_THAT(text, HasSubstr("\ntgi_request_mean_time_per_token_duration_sum 0.02\n"));
  EXPECT_THAT(text, HasSubstr("\ntgi_queue_size 3\n"));
  EXPECT_THAT(text, HasSubstr("\ntgi_batch_current_max_tokens 48\n"));
  EXPECT_THAT(text, HasSubstr("tgi_batch_inference_count{method=\"decode\"} 1\n"));
}

std::size_t Samples(const std::string& text, const std::string& name) {
  std::size_t count = 0;
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) ++count;
  return count;
}

TEST(Metrics, OnlyTheTgiProfileCountsEveryBatchSize) {
  Metrics own;
  own.AddTgiNames(100, 200, 16, false);
  EXPECT_EQ(Samples(own.Render(), "tgi_batch_next_size_bucket{"), 12u);
  Metrics tgi;
  tgi.AddTgiNames(100, 200, 16, true);
  EXPECT_EQ(Samples(tgi.Render(), "tgi_batch_next_size_bucket{"), 1025u);
}

TEST(Metrics, TenantsHaveABoundedNumberOfLabels) {
  Metrics metrics;
  metrics.tenants().Request("");
  metrics.tenants().Request("alice");
  metrics.tenants().Tokens("alice", 5, 7);
  for (std::size_t i = 1; i < TenantMetrics::kMaxTenants + 50; ++i) {
    metrics.tenants().Request("t" + std::to_string(i));
  }
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("penstock_tenant_requests_total{tenant=\"alice\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("penstock_tenant_tokens_total{kind=\"generated\",tenant=\"alice\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("penstock_tenant_requests_total{tenant=\"t99\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("penstock_tenant_requests_total{tenant=\"other\"} 50\n"));
}

}  // namespace
}  // namespace penstock::router
