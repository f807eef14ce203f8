// Notices from a child process to the launcher: progress of its start, readiness or failure. The
// launcher gives each child one end of a stream socket, and its number in PENSTOCK_NOTIFY_FD. The
// child writes lines:
//
//   PROGRESS <stage> <done> <total> [unit]
//       How far a stage of the start has come. With a total of 0 the stage is the name of a file
//       that is read.
//   READY [text]
//       The child is ready. The router's text is the address on which it listens.
//   FAILED <one line>
//       The error that ends the process. The launcher prints it last.
//   MEMORY_PLAN <one line>
//       How much memory the child may use, and for what. The launcher repeats it if the kernel
//       kills the child for its memory.
//   GROUP_LOST <group> <one line>
//       The router lost a replica group. Its processes may still run.
//
// The launcher ignores unknown lines. Without the variable, a notifier logs a failure and does
// nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace penstock {

inline constexpr const char* kNotifyVariable = "PENSTOCK_NOTIFY_FD";

// Thread-safe. Each call writes one line and never blocks. If the launcher does not read, progress
// lines are dropped once the socket is half full, so that the other lines still fit. Lines are cut
// to 1,000 bytes, and line breaks in a text become spaces.
class Notifier {
 public:
  // Takes the descriptor from the environment and removes the variable. Call it once, early in
  // main, while the process has one thread.
  static Notifier FromEnvironment();

  Notifier() = default;  // without a launcher
  explicit Notifier(int owned_fd) : fd_(owned_fd) {}
  Notifier(Notifier&& other) noexcept;
  Notifier& operator=(Notifier&& other) noexcept;
  ~Notifier();

  void Progress(std::string_view stage, std::uint64_t done, std::uint64_t total,
                std::string_view unit = {}) const;
  void Ready(std::string_view text = {}) const;
  // Logs the error only if no launcher prints it.
  void Failed(std::string_view message) const;
  void MemoryPlan(std::string_view plan) const;
  void GroupLost(std::uint32_t group, std::string_view reason) const;

  bool active() const { return fd_ >= 0; }

 private:
  void Send(std::string line) const;

  int fd_ = -1;
};

struct ProgressNotice {
  std::string stage;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::string unit;
};
struct ReadyNotice {
  std::string text;
};
struct FailedNotice {
  std::string message;
};
struct MemoryPlanNotice {
  std::string text;
};
struct GroupLostNotice {
  std::uint32_t group = 0;
  std::string reason;
};
using Notice = std::variant<std::monostate, ProgressNotice, ReadyNotice, FailedNotice,
                            MemoryPlanNotice, GroupLostNotice>;

// Parses one line, without its line break. monostate if the line is unknown.
Notice ParseNotice(std::string_view line);

}  // namespace penstock
