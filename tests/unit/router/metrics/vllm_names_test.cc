// vLLM's names in /metrics (--vllm-metrics).
#include "router/metrics/vllm_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "router/metrics/metrics.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

TEST(VllmNames, AreShownOnlyIfAskedFor) {
  Metrics metrics;
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("vllm:")));
  metrics.AddVllmNames("m", 16);
  const std::string text = metrics.Render();
  for (const VllmName& name : VllmNames()) {
    EXPECT_THAT(text, HasSubstr("# TYPE " + std::string(name.name) + " ")) << name.name;
  }
}

TEST(VllmNames, EverySourceIsAMetric) {
  const Metrics metrics;
  for (const VllmName& name : VllmNames()) {
    EXPECT_TRUE(std::ranges::any_of(metrics.families(), [&](const FamilyText& family) {
      return family.name == name.source;
    })) << name.source;
  }
}

TEST(VllmNames, HaveTheValuesOfTheirSources) {
  Metrics metrics;
  metrics.AddVllmNames("my-model", 16);
  metrics.scheduler().SetQueue(3, 5);
  metrics.scheduler().SetBlocks({.free = 5, .used = 2, .cached = 2, .retiring = 1});
  metrics.requests().Tokens(7, 0, 20);
  metrics.requests().FirstToken(milliseconds(20));
  const std::string text = metrics.Render();
  const std::string labels = R"({engine="0",model_name="my-model"})";
  EXPECT_THAT(text, HasSubstr("\nvllm:num_requests_waiting" + labels + " 3\n"));
  EXPECT_THAT(text, HasSubstr("\nvllm:num_requests_running" + labels + " 5\n"));
  EXPECT_THAT(text, HasSubstr("\nvllm:kv_cache_usage_perc" + labels + " 0.3\n"));
  EXPECT_THAT(text, HasSubstr("\nvllm:gpu_cache_usage_perc" + labels + " 0.3\n"));
  EXPECT_THAT(text, HasSubstr("\nvllm:generation_tokens_total" + labels + " 20\n"));
  EXPECT_THAT(text, HasSubstr("\nvllm:time_to_first_token_seconds_count" + labels + " 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("vllm:cache_config_info{engine=\"0\",model_name=\"my-model\",block_size=\"16\","
                "num_gpu_blocks=\"10\"} 1\n"));
}

TEST(VllmNames, ReasonsOfTheEndAreThoseOfVllm) {
  Metrics metrics;
  metrics.AddVllmNames("m", 16);
  for (const char* reason : {"eos", "stop_token", "stop_string", "length", "cancelled"}) {
    metrics.requests().Succeeded(reason);
  }
  metrics.requests().Failed("deadline");
  metrics.requests().Cancelled();
  const std::string text = metrics.Render();
  const auto shown = [](const std::string& reason, int count) {
    return HasSubstr("vllm:request_success_total{engine=\"0\",model_name=\"m\",finished_reason=\"" +
                     reason + "\"} " + std::to_string(count) + "\n");
  };
  EXPECT_THAT(text, shown("stop", 3));
  EXPECT_THAT(text, shown("length", 1));
  EXPECT_THAT(text, shown("abort", 2));
  EXPECT_THAT(text, shown("error", 1));
}

}  // namespace
}  // namespace penstock::router
