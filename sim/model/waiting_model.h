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
  std::uint64_t place = 0;       // in the order in which requests came
  std::uint64_t since = 0;       // steps that were made before it came
  std::uint64_t work = 0;        // order learned: in steps, when it came
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

  void Add(ModelRequest request, std::uint64_t work);
  // Removes a request that no group admits.
  ModelRequest Remove(RequestId request);
  // Removes a request that a group admits. It overtakes all requests that arrived earlier.
  ModelRequest Admit(RequestId request);
  void FinishAt(RequestId request, std::uint32_t tokens);
  // Groups came or went. `continues`: a group that is up can continue the request.
  void SetDeadlines(const Fits& continues, Time now);
  // Requests that ran and waited for too long, by arrival.
  std::vector<RequestId> Overdue(Time now) const;

  // The first waiting request, among those that fit. Null: there is none, or only the core knows it
  // (longest-prefix).
  const ModelWaiting* Front(const Fits& fits) const;
  bool FrontIsKnown(const Fits& fits) const;
  const ModelWaiting* After(const ModelWaiting& request) const;
  // Of those that fit and are no restarts, the one that came first.
  const ModelWaiting* Earliest(const Fits& fits) const;

  void Defer(RequestId request, const scheduler::Shortage& reason, std::optional<RequestId> behind,
             Time now, OutputReader& core_outputs);
  // Whether Defer would record nothing.
  static bool Recorded(const ModelWaiting& request, const scheduler::Shortage& reason,
                       std::optional<RequestId> behind);
  // The one that came first of all, if it waited as many steps as allowed.
  const ModelWaiting* Overlong() const;
  void CountStep() { ++steps_; }
  void MarkAll();
  // Reasons of those whose place in the queue changed since the last call.
  void Explain(bool group_is_up, Time now, OutputReader& core_outputs);
  void CheckGauges(const scheduler::Snapshot& state) const;

 private:
  std::vector<const ModelWaiting*> Ordered() const;  // first the restarts
  std::vector<const ModelWaiting*> Restarts() const;
  const ModelWaiting* Before(const ModelWaiting& request) const;
  const ModelWaiting* Due() const;
  std::vector<const ModelWaiting*> AsTheyCame() const;  // without restarts
  ModelRequest Take(RequestId request);
  void MarkFollower(const ModelWaiting& request);

  const scheduler::Config config_;
  std::vector<ModelWaiting> all_;  // by arrival
  std::vector<RequestId> changed_;
  std::uint64_t steps_ = 0;
  std::uint64_t places_ = 0;
};

}  // namespace penstock::sim
