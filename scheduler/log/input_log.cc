#include "scheduler/log/input_log.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "scheduler/log/input_log_fields.h"

namespace penstock::scheduler {
namespace {

struct OutputDigest {
  std::uint64_t value = 0;
};

}  // namespace

PENSTOCK_FIELDS(OutputDigest, a(v.value));

namespace {

using Record = std::variant<Input, OutputDigest>;

constexpr std::string_view kName = "penstock input log ";
constexpr std::string_view kVersion = "penstock input log 15\n";

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

std::string EncodeInput(const Input& input) { return EncodeRecord(Record(input)); }

std::string EncodeOutputDigest(std::uint64_t digest) {
  return EncodeRecord(Record(OutputDigest{digest}));
}

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
    const std::string_view line = rest_.substr(0, std::min(rest_.find('\n'), kVersion.size() + 8));
    const bool other = line.substr(0, kName.size()) == kName;
    error_ =
        other ? "an input log of version " + std::string(line.substr(kName.size())) +
                    "; this program reads version " +
                    std::string(kVersion.substr(kName.size(), kVersion.size() - kName.size() - 1)) +
                    " only"
              : "not an input log (it must begin with `penstock input log 15`)";
    return std::nullopt;
  }
  rest_.remove_prefix(kVersion.size());
  return ReadRecord<Config>();
}

std::optional<LoggedInput> InputLogReader::Next() {
  LoggedInput next;
  if (next_) {
    static_cast<Input&>(next) = std::move(*std::exchange(next_, std::nullopt));
  } else {
    if (rest_.empty() || !error_.empty()) return std::nullopt;
    auto record = ReadRecord<Record>();
    if (!record) return std::nullopt;
    if (!std::holds_alternative<Input>(*record)) {
      error_ = "a digest of outputs without its input";
      return std::nullopt;
    }
    static_cast<Input&>(next) = std::get<Input>(std::move(*record));
  }
  if (rest_.empty()) return next;
  auto after = ReadRecord<Record>();
  if (!after) return next;  // this input is complete; the next call reports the error
  if (auto* input = std::get_if<Input>(&*after)) {
    next_ = std::move(*input);
  } else {
    next.digest = std::get<OutputDigest>(*after).value;
  }
  return next;
}

}  // namespace penstock::scheduler
