// What a child process tells the launcher that started it: how far its start has come, that it is
// ready, or why it gives up. The launcher hands each child one end of a stream socket and its
// number in PENSTOCK_NOTIFY_FD; the child writes lines:
//
//   PROGRESS <stage> <done> <total> [unit]   loading 1048576 8388608 bytes; total 0 = unknown
//   READY [text]                             the router's text is the address it listens on
//   FAILED <one line>                        the error that ends the process; the launcher
//                                            repeats it as its last line
//   GROUP_LOST <group> <one line>            the router lost a replica group, whatever became
//                                            of its processes
//
// Unknown lines are ignored. A process that nobody launched (no variable) has a notifier that does
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace penstock {

inline constexpr const char* kNotifyVariable = "PENSTOCK_NOTIFY_FD";

// Thread-safe: each call writes one line, at once. It never blocks: a launcher that does not read
// loses progress lines, which leave half of the socket's room to the others. Lines are cut to 1,000
// bytes; line breaks in a text become spaces.
class Notifier {
 public:
  // Takes the descriptor over from the environment and removes the variable; call it early in main,
  // once, while the process has one thread.
  static Notifier FromEnvironment();

  Notifier() = default;  // does nothing
  explicit Notifier(int owned_fd) : fd_(owned_fd) {}
  Notifier(Notifier&& other) noexcept;
  Notifier& operator=(Notifier&& other) noexcept;
  ~Notifier();

  void Progress(std::string_view stage, std::uint64_t done, std::uint64_t total,
                std::string_view unit = {}) const;
  void Ready(std::string_view text = {}) const;
  void Failed(std::string_view message) const;
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
struct GroupLostNotice {
  std::uint32_t group = 0;
  std::string reason;
};
using Notice =
    std::variant<std::monostate, ProgressNotice, ReadyNotice, FailedNotice, GroupLostNotice>;

// The launcher's side: one line without its line break. monostate for anything it does not know.
Notice ParseNotice(std::string_view line);

}  // namespace penstock
