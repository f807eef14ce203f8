// The input log: all inputs of a Scheduler, in order. A Scheduler made from the Config of the log
// gives the same Outputs again (guarantee G9), so a log is a complete bug report.
//
// A log begins with a line of text that has the version. Records follow: a length (variable-length
// integer), a 32-bit FNV-1a checksum, and that many bytes. The first record is the Config. Each
// later one is an Input, or the digest of the Outputs of the Input before it. An input is written
// before it is applied and its digest after, so after a crash the last record is the input that
// caused it. A log that was cut off can be read up to the cut.
//
// Pure functions on bytes; the caller writes files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/config.h"
#include "scheduler/input.h"

namespace penstock::scheduler {

// The beginning of a log.
std::string EncodeLogHeader(const Config& config);
// One record.
std::string EncodeInput(const Input& input);
// The record after an input: DigestOf its Outputs.
std::string EncodeOutputDigest(std::uint64_t digest);

struct LoggedInput : Input {
  std::optional<std::uint64_t> digest;  // of its outputs, if the log has it
};

class InputLogReader {
 public:
  // `bytes` must outlive the reader.
  explicit InputLogReader(std::string_view bytes) : rest_(bytes) {}

  // Must be the first call. nullopt if this is not an input log of this version; error() says why.
  std::optional<Config> ReadHeader();
  // The next input. nullopt at the end, and at a damaged record: then error() is not empty.
  std::optional<LoggedInput> Next();

  const std::string& error() const { return error_; }

 private:
  template <class T>
  std::optional<T> ReadRecord();

  std::string_view rest_;
  std::string error_;
  std::optional<Input> next_;  // read already, after an input without a digest
};

}  // namespace penstock::scheduler
