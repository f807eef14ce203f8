#include "router/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace penstock::router {
namespace {

struct Row {
  const char* name;
  prometheus::MetricType type;
  const char* help;
  double (*read)();  // null: the time of the start
};

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto micros = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(micros) * 1e-6;
}

double OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  // One of them is that of the folder.
  return error ? 0 : static_cast<double>(std::distance(begin(files), end(files)) - 1);
}

double MostOpenFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

constexpr auto kGauge = prometheus::MetricType::Gauge;
constexpr Row kRows[] = {
    {"process_start_time_seconds", kGauge, "Start of the router, in seconds since 1970.", nullptr},
    {"process_cpu_seconds_total", prometheus::MetricType::Counter,
     "Processor time of the router, in all its threads.", CpuSeconds},
    {"process_resident_memory_bytes", kGauge, "Memory of the router.",
     [] { return static_cast<double>(ResidentBytes()); }},
    {"process_open_fds", kGauge, "Open files of the router, connections included.", OpenFiles},
    {"process_max_fds", kGauge, "Limit of open files of the router.", MostOpenFiles},
};

}  // namespace

std::uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

ProcessMetrics::ProcessMetrics(Registry& registry)
    : started_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                   .count()) {
  for (const Row& row : kRows) {
    registry.Describe(row.name, row.type == kGauge ? "gauge" : "counter", row.help, "");
  }
}

void ProcessMetrics::AppendTo(std::vector<prometheus::MetricFamily>& page) const {
  for (const Row& row : kRows) {
    prometheus::ClientMetric metric;
    const double value = row.read == nullptr ? started_ : row.read();
    (row.type == kGauge ? metric.gauge.value : metric.counter.value) = value;
    page.push_back({row.name, row.help, row.type, {metric}});
  }
}

}  // namespace penstock::router
