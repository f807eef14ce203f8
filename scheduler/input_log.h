// The input log: everything that the core learned, in order. Applied to a Scheduler made from its
// Config it gives the same Outputs again (guarantee G9), so a log is a complete bug report.
//
// Form: a first line of text with the version, then records. A record is its length (variable-
// length integer), a 32-bit FNV-1a checksum and the bytes; the first holds the Config, each further
// one an Input. Pure functions on bytes: writing files is the caller's business. A log that was cut
// off by a crash is readable up to the cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scheduler/config.h"
#include "scheduler/input.h"

namespace penstock::scheduler {

// What a log begins with.
std::string EncodeLogHeader(const Config& config);
// One record, ready to be appended.
std::string EncodeInput(const Input& input);

class InputLogReader {
 public:
  // `bytes` must outlive the reader.
  explicit InputLogReader(std::string_view bytes) : rest_(bytes) {}

  // First call. Nothing when this is no input log of this version; error() says why.
  std::optional<Config> ReadHeader();
  // The next input; nothing at the end, or at a broken record (then error() is not empty).
  std::optional<Input> Next();

  const std::string& error() const { return error_; }

 private:
  template <class T>
  std::optional<T> ReadRecord();

  std::string_view rest_;
  std::string error_;
};

}  // namespace penstock::scheduler
