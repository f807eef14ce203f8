// Where the time of one request goes: a clock that is always in one TimeKind. Every instant from
// the start to the end is added to one total, so the totals sum to the wall time. Times that run
// backwards, as between two threads, count as no time.
//
// Not thread-safe; reads no clock. A step costs a few additions. Only a new span allocates memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/request/time_kind.h"
#include "common/time.h"
#include "router/ledger_view.h"

namespace penstock::router {

class TimeLedger {
 public:
  static constexpr std::size_t kMostSpans = 32;
  static constexpr std::size_t kMostBeside = 4;

  TimeLedger(Time start, TimeKind kind);

  // Time from `at` until the next call counts as `kind`. `behind` is the request it waits for.
  void Enter(TimeKind kind, Time at, std::optional<RequestId> behind = std::nullopt);

  // Between Admit and the next Enter it runs: Step divides the time.
  void Admit(Time at);
  void Preempt(Time at);

  struct Step {
    Time at;               // when its result came
    Duration queued{0};    // in the shard, behind an earlier step
    Duration computed{0};  // by the shard
    bool gave_token = false;
    // The request that computes prompt tokens in the same step, if another does.
    std::optional<RequestId> prompt_of = std::nullopt;
    // Other requests in the step: the first ones, and how many. Read for prompts only.
    std::span<const RequestId> others = {};
    std::uint32_t other_count = 0;
  };
  void Take(const Step& step);

  // Nothing counts after it.
  void Close(Time at);

  bool closed() const { return closed_; }
  bool running() const { return kind_ == TimeKind::kBetweenSteps; }
  bool computes_prompt() const { return running() && prompt_; }
  bool waits() const { return kind_ >= TimeKind::kQueue || kind_ == TimeKind::kPreempted; }
  TimeKind kind() const { return kind_; }
  Time since() const { return since_; }
  std::optional<RequestId> behind() const { return behind_; }
  const TimeTotals& totals() const { return totals_; }

  // As if it were closed at `now`.
  LedgerView View(Time now) const;

 private:
  struct Span {
    TimeKind kind;
    Time begin;
    Time end;
    std::optional<RequestId> behind;
    std::array<RequestId, kMostBeside> beside;
    std::uint32_t beside_count = 0;
    std::uint32_t beside_left_out = 0;
    std::uint32_t steps = 0;
  };

  void Add(TimeKind kind, Duration duration) {
    totals_[static_cast<std::size_t>(kind)] += duration;
  }
  // Adds the time until `at`, at most, to the present kind.
  void Advance(Time at);
  Span& Append(TimeKind kind, Time begin, Time end);
  void ShowPrompt(const Step& step, TimeKind kind, Duration computed);
  void ShowDecode(const Step& step);

  const Time start_;
  Time mark_;   // all before it is in the totals
  Time since_;  // of the present kind and `behind_`
  TimeKind kind_;
  bool prompt_ = true;  // the prompt is not computed yet
  bool again_ = false;  // it was preempted
  bool open_ = true;    // the last span goes on
  bool closed_ = false;
  std::optional<RequestId> behind_;
  TimeTotals totals_{};
  std::vector<Span> spans_;
  std::uint32_t left_out_ = 0;
};

}  // namespace penstock::router
