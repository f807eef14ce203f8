// The output of the launcher: the merged log on standard error, and one block or record on standard
// output when the server is ready.
#pragma once

#include <chrono>
#include <string>

#include "common/options/values.h"
#include "launcher/progress_text.h"
#include "launcher/supervisor.h"

namespace penstock::launcher {

// The block of text: model, address, a curl line to paste. `address` is host:port; a wildcard host
// is replaced by the loopback address in all lines but the first. `penstock` is the command that
// chats. If it is empty, the lines for a user at a terminal are left out: the page and the chat.
std::string ReadyBlock(const options::Values& values, std::string_view address,
                       std::chrono::nanoseconds startup, const std::string& penstock = "");

// The same facts as one record in the form of the log, for --log-format json. Like the block it is
// written to standard output, so that a script can wait for it without reading the log.
std::string ReadyRecord(const options::Values& values, std::string_view address,
                        std::chrono::nanoseconds startup);

// Whether `line` is a record of our own log in this format, complete with time and component.
bool IsLogRecord(std::string_view line, bool json);

// How often progress is printed: more often on a terminal.
std::chrono::nanoseconds ProgressInterval();

class Console : public SupervisorObserver {
 public:
  explicit Console(const options::Values& values);

  // Prints log records of Penstock unchanged. Any other line becomes a record with the child's
  // name.
  void OnLine(const ChildSpec& child, std::string_view line) override;
  void OnProgress(const ChildSpec& child, const ProgressNotice& progress) override;
  void OnReady(std::string_view address) override;
  void OnStopping(std::string_view reason) override;
  void OnGroup(GroupNews kind, std::string_view news) override;

  // Prints the last lines of the child that failed, then the error as the last line.
  void Report(const Outcome& outcome) const;

 private:
  const options::Values& values_;
  bool json_;
  ProgressText progress_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace penstock::launcher
