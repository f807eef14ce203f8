// Short forms for registering metrics, and the buckets that several of them share. For the .cc
// files
// of this folder only.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "common/time.h"

namespace penstock::router {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;
using Buckets = Histogram::BucketBoundaries;

inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// 1, 2.5, 5 per decade.
inline Buckets LatencyBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250};
}
inline Buckets InterTokenBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
}

inline Family<Counter>& Counters(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
inline Family<Gauge>& Gauges(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
inline Gauge& OneGauge(Registry& registry, const char* name, const char* help) {
  return Gauges(registry, name, help).Add({});
}
inline Histogram& OneHistogram(Registry& registry, const char* name, const char* help,
                               const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

}  // namespace penstock::router
