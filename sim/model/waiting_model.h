// The waiting requests: who is before whom, and why each of them waits
// (docs/scheduling-admission.md, "Order" and "Turns of tenants"). Keeps a list in order of arrival
// and sorts it for each question.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
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
  // Removes a request that a group admits, which computes `tokens` tokens of its prompt. It
  // overtakes all requests of its account that arrived earlier.
  ModelRequest Admit(RequestId request, std::uint64_t tokens);
  // Charges accounts for what the core reports.
  void ChargeTokens(const std::vector<scheduler::Event>& events);
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
  // Of those that fit and are no restarts, the one that came first, of the account whose turn it is
  // among those.
  const ModelWaiting* Earliest(const Fits& fits) const;

  void Defer(RequestId request, const scheduler::Shortage& reason, std::optional<RequestId> behind,
             Time now, OutputReader& core_outputs);
  // Whether Defer would record nothing.
  static bool Recorded(const ModelWaiting& request, const scheduler::Shortage& reason,
                       std::optional<RequestId> behind);
  // The one for which others yield: the first of the account whose turn it is among those with a
  // request that fits. Null if it waited less than allowed, or does not fit.
  const ModelWaiting* Overlong(const Fits& fits) const;
  void CountStep() { ++steps_; }
  void MarkAll();
  // Reasons of those whose place in the queue changed since the last call.
  void Explain(bool group_is_up, Time now, OutputReader& core_outputs);
  void CheckGauges(const scheduler::Snapshot& state) const;

 private:
  std::vector<const ModelWaiting*> Ordered(const std::string& account) const;
  std::vector<std::string> Turns() const;
  std::vector<const ModelWaiting*> Restarts() const;
  const ModelWaiting* Before(const ModelWaiting& request) const;
  // The first of an account, if it waited as many steps as allowed.
  const ModelWaiting* Overlong(const std::string& account) const;
  // The first of an account, if it was overtaken as often as allowed or waited too long.
  const ModelWaiting* Due(const std::string& account) const;
  std::vector<const ModelWaiting*> AsTheyCame() const;  // without restarts
  std::vector<const ModelWaiting*> AsTheyCame(const std::string& account) const;
  void Join(const ModelRequest& request);
  void Charge(const std::string& account, std::uint64_t work);
  ModelRequest Take(RequestId request);
  void MarkFollower(const ModelWaiting& request);

  const scheduler::Config config_;
  struct Account {
    std::uint64_t served = 0;
    std::uint32_t weight = 1;
  };

  std::vector<ModelWaiting> all_;  // by arrival
  std::map<std::string, Account> accounts_;
  std::map<RequestId, std::string> account_of_;
  std::optional<std::string> left_last_;  // the account that waited last
  std::vector<RequestId> changed_;
  std::uint64_t steps_ = 0;
  std::uint64_t places_ = 0;
};

}  // namespace penstock::sim
