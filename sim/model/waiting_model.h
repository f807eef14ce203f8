// The waiting requests: who is before whom, and why each of them waits
// (docs/scheduling-admission.md, "Order"). Keeps a list in order of arrival and sorts it for each
// question.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/time.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"
#include "scheduler/scheduler.h"
#include "sim/model/model_sequence.h"
#include "sim/model/output_reader.h"

namespace penstock::sim {

struct ModelWaiting : ModelRequest {
  scheduler::Shortage reason;
  std::optional<RequestId> behind;
  std::uint32_t overtaken = 0;
  std::optional<Time> fails_at;  // no group that is up can continue it
};

class WaitingModel {
 public:
  using Fits = std::function<bool(const ModelRequest&)>;

  explicit WaitingModel(const scheduler::Config& config) : config_(config) {}

  const std::vector<ModelWaiting>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  // New requests are refused.
  bool full() const;
  const ModelWaiting* Find(RequestId request) const;

  void Add(ModelRequest request);
  // Removes a request that no group admits.
  ModelRequest Remove(RequestId request);
  // Removes a request that a group admits. It overtakes all requests that arrived earlier.
  ModelRequest Admit(RequestId request);
  void FinishAt(RequestId request, std::uint32_t tokens);
  // Groups came or went. `continues`: a group that is up can continue the request.
  void SetDeadlines(const Fits& continues, Time now);
  // Restarts that waited for too long, by arrival.
  std::vector<RequestId> Overdue(Time now) const;

  // The first waiting request, among those that fit. Null: there is none, or only the core knows it
  // (longest-prefix).
  const ModelWaiting* Front(const Fits& fits) const;
  bool FrontIsKnown(const Fits& fits) const;
  const ModelWaiting* After(const ModelWaiting& request) const;
  // The first arrival that fits and never ran.
  const ModelWaiting* Earliest(const Fits& fits) const;

  void Defer(RequestId request, const scheduler::Shortage& reason, std::optional<RequestId> behind,
             Time now, OutputReader& core_outputs);
  // Whether Defer would record nothing.
  static bool Recorded(const ModelWaiting& request, const scheduler::Shortage& reason,
                       std::optional<RequestId> behind);
  void MarkAll();
  // Reasons of those whose place in the queue changed since the last call.
  void Explain(bool group_is_up, Time now, OutputReader& core_outputs);
  void CheckGauges(const scheduler::Snapshot& state) const;

 private:
  std::vector<const ModelWaiting*> Ordered() const;  // first the restarts
  std::vector<const ModelWaiting*> Restarts() const;
  const ModelWaiting* Before(const ModelWaiting& request) const;
  const ModelWaiting* Due() const;
  ModelRequest Take(RequestId request);
  void MarkFollower(const ModelWaiting& request);

  const scheduler::Config config_;
  std::vector<ModelWaiting> all_;  // by arrival
  std::vector<RequestId> changed_;
};

}  // namespace penstock::sim
