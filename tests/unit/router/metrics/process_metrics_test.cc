#include "router/metrics/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "router/metrics/metrics.h"

namespace penstock::router {
namespace {

std::map<std::string, double> Values(const ProcessMetrics& metrics) {
  std::vector<prometheus::MetricFamily> page;
  metrics.AppendTo(page);
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : page) {
    const prometheus::ClientMetric& metric = family.metric.at(0);
    const bool is_counter = family.type == prometheus::MetricType::Counter;
    values[family.name] = is_counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetricsTest, ShowTheProcessAsItIs) {
  Registry registry;
  const ProcessMetrics metrics(registry);
  const auto before = Values(metrics);
  EXPECT_NEAR(before.at("process_start_time_seconds"), static_cast<double>(std::time(nullptr)), 60);
  EXPECT_GT(before.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_LT(before.at("process_resident_memory_bytes"), 1 << 30);
  EXPECT_GE(before.at("process_max_fds"), before.at("process_open_fds"));

  const int file = ::open("/dev/null", O_RDONLY);
  const std::clock_t begin = std::clock();
  while (std::clock() - begin < CLOCKS_PER_SEC / 20) continue;
  const auto after = Values(metrics);
  ::close(file);
  EXPECT_EQ(after.at("process_open_fds"), before.at("process_open_fds") + 1);
  EXPECT_GE(after.at("process_cpu_seconds_total"), before.at("process_cpu_seconds_total") + 0.04);
  EXPECT_EQ(after.at("process_start_time_seconds"), before.at("process_start_time_seconds"));
}

TEST(ProcessMetricsTest, AreOnThePage) {
  EXPECT_NE(Metrics().Render().find("\n# TYPE process_cpu_seconds_total counter\n"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::router
