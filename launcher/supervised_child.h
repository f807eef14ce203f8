// One child as the supervisor sees it: its process, what it printed and reported, how it ended.
// Used by the supervisor's thread only.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/notify.h"
#include "launcher/child_process.h"
#include "launcher/line_buffer.h"

namespace penstock::launcher {

class SupervisedChild {
 public:
  using Clock = std::chrono::steady_clock;
  using OnNotice = std::function<void(const Notice& notice)>;

  explicit SupervisedChild(ChildSpec spec) : spec_(std::move(spec)) {}

  // Starts the program. A child that has ended may be started again; its old output is dropped.
  absl::Status Start();

  // For its next starts.
  void AddArguments(std::vector<std::string> arguments);

  const ChildSpec& spec() const { return spec_; }
  bool is_shard() const { return spec_.rank.has_value(); }
  bool started() const { return process_.has_value(); }
  bool alive() const { return process_.has_value() && !state_.exit.has_value(); }
  const std::optional<ExitStatus>& exit() const { return state_.exit; }
  const std::deque<std::string>& last_lines() const { return state_.lines.last_lines(); }

  bool ready() const { return state_.ready; }
  void set_ready() { state_.ready = true; }

  std::string Label() const;  // "shard-1 (rank 1, pid 4711)"
  // "shard-1 (rank 1, pid 4711) was killed by signal 9 (SIGKILL)", with the cause if it left one.
  std::string DescribeEnd() const;
  // The text of its FAILED notice, which says the cause; empty: none.
  const std::string& failure() const { return state_.failure; }
  const std::string& memory_plan() const { return state_.memory_plan; }  // empty: none yet
  // "shard-1 (loading 10 of 20 bytes)".
  std::string DescribeProgress() const;

  // Descriptors to poll. A closed descriptor is -1, which poll() skips.
  std::vector<int> Descriptors() const;
  void ReadOutput(const LineBuffer::OnLine& on_line);
  void ReadNotices(const OnNotice& on_notice);
  // Returns false if the notice repeats the last one.
  bool SetProgress(const ProgressNotice& progress);

  // Collects the process if it has ended, with its last output. Returns true if it ended now.
  bool Reap(const LineBuffer::OnLine& on_line, const OnNotice& on_notice);

  void Signal(int signal) const { process_->Signal(signal); }
  void Kill() const { process_->Kill(); }

  // A process that was stopped (SIGSTOP) has until `limit` from now to continue.
  void NoteStop(std::chrono::nanoseconds limit);
  const std::optional<Clock::time_point>& stopped_until() const { return state_.stopped_until; }
  // Returns true once, after a stopped process did not continue in time.
  bool TakeOverdueStop(Clock::time_point now);

 private:
  // What is known of the present run.
  struct State {
    std::optional<ExitStatus> exit;
    LineBuffer lines;
    LineBuffer notices;
    ProgressNotice progress;
    std::string failure;  // the text of its FAILED notice
    std::string memory_plan;
    bool ready = false;
    std::optional<Clock::time_point> stopped_until;
  };

  ChildSpec spec_;
  std::optional<ChildProcess> process_;
  State state_;
};

}  // namespace penstock::launcher
