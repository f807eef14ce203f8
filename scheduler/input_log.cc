#include "scheduler/input_log.h"

#include "scheduler/input_log_fields.h"

namespace penstock::scheduler {
namespace {

constexpr std::string_view kVersion = "penstock input log 2\n";

std::uint32_t Fnv1a(std::string_view bytes) {
  std::uint32_t hash = 2166136261u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

template <class T>
std::string EncodeRecord(const T& value) {
  ArchiveWriter body;
  body(value);
  const std::string bytes = body.Take();
  ArchiveWriter head;
  head.PutVarint(bytes.size());
  head.PutVarint(Fnv1a(bytes));
  return head.Take() + bytes;
}

}  // namespace

std::string EncodeLogHeader(const Config& config) {
  return std::string(kVersion) + EncodeRecord(config);
}

std::string EncodeInput(const Input& input) { return EncodeRecord(input); }

template <class T>
std::optional<T> InputLogReader::ReadRecord() {
  ArchiveReader head(rest_);
  const std::uint64_t size = head.GetVarint();
  const std::uint64_t checksum = head.GetVarint();
  const std::string_view body = head.GetBytes(size);
  if (!head.ok()) {
    error_ = "the log is cut off: " + std::to_string(rest_.size()) + " bytes of a record are left";
    return std::nullopt;
  }
  ArchiveReader reader(body);
  T value;
  reader(value);
  if (Fnv1a(body) != checksum || !reader.ok() || !reader.rest().empty()) {
    error_ = "a record of " + std::to_string(size) + " bytes is damaged";
    return std::nullopt;
  }
  rest_ = head.rest();
  return value;
}

std::optional<Config> InputLogReader::ReadHeader() {
  if (rest_.substr(0, kVersion.size()) != kVersion) {
    error_ = "not an input log of this version (it must begin with `penstock input log 2`)";
    return std::nullopt;
  }
  rest_.remove_prefix(kVersion.size());
  return ReadRecord<Config>();
}

std::optional<Input> InputLogReader::Next() {
  if (rest_.empty() || !error_.empty()) return std::nullopt;
  return ReadRecord<Input>();
}

}  // namespace penstock::scheduler
