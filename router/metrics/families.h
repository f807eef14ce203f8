// Registers the metrics of one class. Short forms that several classes here share. For the headers
// and .cc files of this folder only.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/time.h"

namespace penstock::router {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

struct FamilyText {
  std::string name;
  std::string type;  // "counter", "gauge", "histogram", "summary"
  std::string help;
  std::string labels;  // names of its labels, separated by blanks; empty: it has none
};

// Knows every family, also one without a member yet, which Collect() leaves out.
class Registry : public prometheus::Registry {
 public:
  void Describe(const char* name, const char* type, const char* help, const char* labels) {
    families_.push_back({name, type, help, labels});
  }
  const std::vector<FamilyText>& families() const { return families_; }

 private:
  std::vector<FamilyText> families_;  // in the order of registration
};

// The plural forms register a family whose members have these labels, the others a metric without.
class Families {
 public:
  explicit Families(Registry& registry) : registry_(registry) {}

  Family<Counter>& Counters(const char* name, const char* help, const char* labels = "") const {
    registry_.Describe(name, "counter", help, labels);
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  }
  Family<Gauge>& Gauges(const char* name, const char* help, const char* labels = "") const {
    registry_.Describe(name, "gauge", help, labels);
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
  }
  Family<Histogram>& Histograms(const char* name, const char* help, const char* labels = "") const {
    registry_.Describe(name, "histogram", help, labels);
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
  }
  Family<prometheus::Summary>& Summaries(const char* name, const char* help,
                                         const char* labels = "") const {
    registry_.Describe(name, "summary", help, labels);
    return prometheus::BuildSummary().Name(name).Help(help).Register(registry_);
  }
  Counter& OneCounter(const char* name, const char* help) const {
    return Counters(name, help).Add({});
  }
  Gauge& OneGauge(const char* name, const char* help) const { return Gauges(name, help).Add({}); }
  Histogram& OneHistogram(const char* name, const char* help, const Buckets& buckets) const {
    return Histograms(name, help).Add({}, buckets);
  }

 private:
  Registry& registry_;
};

// Most values are the same as at the step before, and a write takes the cache line from others.
inline void Add(Counter& counter, std::uint64_t count) {
  if (count > 0) counter.Increment(static_cast<double>(count));
}
inline void Set(Gauge& gauge, std::uint64_t value) {
  if (gauge.Value() != static_cast<double>(value)) gauge.Set(static_cast<double>(value));
}
inline void Observe(Histogram& histogram, std::uint64_t value) {
  histogram.Observe(static_cast<double>(value));
}
inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline void Observe(Histogram& histogram, Duration duration) {
  histogram.Observe(Seconds(duration));
}

// 1, 2.5, 5 per decade.
inline Buckets LatencyBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250};
}
inline Buckets InterTokenBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
}

}  // namespace penstock::router
