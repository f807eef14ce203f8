// An engine whose calls and answers a test can observe and control. It commits what plans request
// and samples token 1 for each row.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "shard/service/rank_engine.h"

namespace penstock::shard {

class FakeEngine final : public RankEngine {
 public:
  // Shared with the test; thread-safe.
  struct Control {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> calls;
    bool hold_load = false;
    bool hold_steps = false;  // Execute waits until it is false
    bool long_calls = false;  // Interrupt does not end a call
    bool interrupted = false;
    bool run_ahead = false;                    // steps can be begun
    std::vector<std::function<void()>> ready;  // of steps begun, for the test to call
    absl::Status load_status;
    std::uint64_t fail_at_step = 0;

    void Note(const std::string& call) {
      std::lock_guard lock(mutex);
      calls.push_back(call);
      changed.notify_all();
    }
    void Set(bool Control::*flag, bool value) {
      std::lock_guard lock(mutex);
      this->*flag = value;
      changed.notify_all();
    }
    void WaitWhile(bool Control::*flag) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return (interrupted && !long_calls) || !(this->*flag); });
    }
    // Returns false if `call` was not seen within ten seconds.
    bool WaitForCall(const std::string& call, std::size_t times = 1) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, std::chrono::seconds(10), [&] {
        return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), call)) >= times;
      });
    }
  };

  FakeEngine(Control& control, std::uint32_t rank) : control_(control), rank_(rank) {}

  v1::DescribeResponse Facts() const override {
    v1::DescribeResponse facts;
    facts.set_model_id("fake");
    facts.set_rank(rank_);
    facts.set_world_size(2);
    facts.set_vocabulary(100);
    facts.add_eos_token_ids(2);
    facts.set_max_position(64);
    facts.add_kv_groups()->set_bytes_per_token(16);
    facts.set_block_size(4);
    facts.set_fingerprint("the-right-one");
    return facts;
  }
  absl::Status Load(const LoadCallback& progress) override {
    v1::LoadProgress half;
    half.set_stage("weights");
    half.set_bytes_done(10);
    half.set_bytes_total(100);
    progress(half);
    control_.WaitWhile(&Control::hold_load);
    return control_.load_status;
  }
  absl::Status Configure(const v1::ConfigureRequest& setup) override {
    control_.Note("Configure");
    slots_.assign(setup.limits().max_sequences(), {});
    return absl::OkStatus();
  }
  absl::StatusOr<v1::WarmupResponse> Warmup() override {
    control_.Note("Warmup");
    v1::WarmupResponse report;
    report.add_blocks(8);
    report.add_step_times()->set_nanoseconds(1000);
    return report;
  }
  absl::StatusOr<std::uint64_t> Commit(const PoolSize& pool) override {
    control_.Note("Commit");
    return std::uint64_t{pool.blocks[0]} * 64;
  }
  absl::StatusOr<StepResult> Execute(const StepPlan& plan) override {
    control_.Note("Execute");
    control_.WaitWhile(&Control::hold_steps);
    if (plan.step.value() == control_.fail_at_step) return absl::InternalError("step failed");
    for (const SequenceStart& start : plan.starts) slots_[start.slot.value()] = {start, 0};
    StepResult result;
    for (const Segment& segment : plan.segments) {
      State& state = slots_[segment.slot.value()];
      state.committed += segment.Rows();
      SequenceResult sequence;
      sequence.slot = segment.slot;
      sequence.sequence = state.start.sequence;
      sequence.committed_length = state.committed;
      sequence.tokens = {{1, 0.0f, {}}};
      result.sequences.push_back(sequence);
    }
    return result;
  }
  absl::StatusOr<bool> Begin(const StepPlan& plan, std::function<void()> ready) override {
    const std::lock_guard lock(control_.mutex);
    if (!control_.run_ahead) return false;
    begun_.push_back(plan);
    control_.ready.push_back(std::move(ready));
    control_.calls.push_back("Begin");
    control_.changed.notify_all();
    return true;
  }
  absl::StatusOr<StepResult> Collect() override {
    const StepPlan plan = std::move(begun_.front());
    begun_.pop_front();
    return Execute(plan);
  }
  void Reset() override {
    begun_.clear();
    control_.Note("Reset");
  }
  void Interrupt() override { control_.Set(&Control::interrupted, true); }

 private:
  struct State {
    SequenceStart start;
    std::uint32_t committed = 0;
  };
  Control& control_;
  const std::uint32_t rank_;
  std::vector<State> slots_;
  std::deque<StepPlan> begun_;
};

}  // namespace penstock::shard
