// The input log: everything that the core learned, in order. Applied to a Scheduler made from its
// Config it gives the same Outputs again (guarantee G9), so a log is a complete bug report.
//
// Form: a first line of text with the version, then records. A record is its length (variable-
// length integer), a 32-bit FNV-1a checksum and the bytes; the first holds the Config, each further
// one an Input or the digest of the Outputs of the Input before it. An input is written before it
// is applied and the digest after, so the input that broke the core is the last of the log, alone.
// Pure functions on bytes: writing files is the caller's business. A log that was cut off by a
// crash is readable up to the cut.
#pragma once

#include <cstdint>
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
// The record that follows it: DigestOf its Outputs.
std::string EncodeOutputDigest(std::uint64_t digest);

struct LoggedInput : Input {
  std::optional<std::uint64_t> digest;  // of its outputs, if the log knows
};

class InputLogReader {
 public:
  // `bytes` must outlive the reader.
  explicit InputLogReader(std::string_view bytes) : rest_(bytes) {}

  // First call. Nothing when this is no input log of this version; error() says why.
  std::optional<Config> ReadHeader();
  // The next input; nothing at the end, or at a broken record (then error() is not empty).
  std::optional<LoggedInput> Next();

  const std::string& error() const { return error_; }

 private:
  template <class T>
  std::optional<T> ReadRecord();

  std::string_view rest_;
  std::string error_;
  std::optional<Input> ahead_;  // read already: the record after an input without a digest
};

}  // namespace penstock::scheduler
