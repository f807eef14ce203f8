#include "shard/weights/safetensors_header.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <set>
#include <utility>

#include "common/short_text.h"
#include "common/status.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

struct StoredType {
  std::string_view name;
  std::uint32_t bits;
};

constexpr std::array<StoredType, 22> kStoredTypes = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

const StoredType* FindStoredType(std::string_view name) {
  for (const StoredType& type : kStoredTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::string Quoted(std::string_view text) { return "\"" + ShortText(text, 80) + "\""; }

// One entry as the header states it, before any arithmetic.
struct RawEntry {
  std::string name;
  std::string type;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> offsets;
  bool has_type = false, has_shape = false, has_offsets = false;
};

// Takes the parser's events, so that duplicate keys are seen and no document tree is built.
// depth: 0 outside, 1 in the header object, 2 in an entry, 3 in an array of an entry.
class HeaderHandler {
 public:
  static constexpr std::size_t max_object_size = kMaxTensorCount + 1;
  static constexpr std::size_t max_array_size = kMaxTensorRank;
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  std::vector<RawEntry> entries;
  std::string problem;  // one line, set before an event is refused

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }

  bool on_object_begin(json::error_code& ec) {
    if (depth_ == 0 || (depth_ == 1 && !key_.empty())) {
      ++depth_;
      return true;
    }
    return Unexpected("object", ec);
  }
  bool on_object_end(std::size_t, json::error_code&) {
    --depth_;
    return true;
  }
  bool on_array_begin(json::error_code& ec) {
    numbers_ = nullptr;
    if (depth_ == 2 && !in_metadata_ && key_ == "shape") numbers_ = &entries.back().shape;
    if (depth_ == 2 && !in_metadata_ && key_ == "data_offsets") numbers_ = &entries.back().offsets;
    if (numbers_ == nullptr) return Unexpected("array", ec);
    ++depth_;
    return true;
  }
  bool on_array_end(std::size_t, json::error_code&) {
    --depth_;
    numbers_ = nullptr;
    return true;
  }

  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    partial_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    partial_.append(part.data(), part.size());
    key_ = std::exchange(partial_, {});
    if (depth_ == 1) return BeginEntry(ec);
    return in_metadata_ ? BeginMetadataKey(ec) : BeginField(ec);
  }

  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    partial_.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    partial_.append(part.data(), part.size());
    std::string text = std::exchange(partial_, {});
    if (depth_ == 2 && in_metadata_) return true;
    if (depth_ == 2 && key_ == "dtype") {
      entries.back().type = std::move(text);
      return true;
    }
    return Unexpected("string", ec);
  }

  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code& ec) {
    if (value < 0) return Unexpected("negative number", ec);
    return on_uint64(static_cast<std::uint64_t>(value), {}, ec);
  }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code& ec) {
    if (depth_ != 3) return Unexpected("number", ec);
    numbers_->push_back(value);
    return true;
  }
  bool on_double(double, json::string_view, json::error_code& ec) {
    return Unexpected("fraction", ec);
  }
  bool on_bool(bool, json::error_code& ec) { return Unexpected("boolean", ec); }
  bool on_null(json::error_code& ec) { return Unexpected("null", ec); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool Fail(std::string text, json::error_code& ec) {
    problem = std::move(text);
    ec = json::error::exception;
    return false;
  }
  bool Unexpected(std::string_view what, json::error_code& ec) {
    std::string where = depth_ == 0 ? "the header" : "key " + Quoted(key_);
    if (depth_ >= 2) {
      where += in_metadata_ ? " of __metadata__" : " of tensor " + Quoted(entries.back().name);
    }
    return Fail("unexpected " + std::string(what) + " at " + where, ec);
  }
  bool BeginEntry(json::error_code& ec) {
    if (const absl::Status name = CheckTensorName(key_); !name.ok()) return Fail(Message(name), ec);
    if (!names_.insert(key_).second) return Fail("duplicate key " + Quoted(key_), ec);
    in_metadata_ = key_ == "__metadata__";
    metadata_keys_.clear();
    if (!in_metadata_) entries.emplace_back().name = key_;
    return true;
  }
  bool BeginMetadataKey(json::error_code& ec) {
    if (!metadata_keys_.insert(key_).second) {
      return Fail("duplicate key " + Quoted(key_) + " of __metadata__", ec);
    }
    return true;
  }
  bool BeginField(json::error_code& ec) {
    RawEntry& entry = entries.back();
    bool* seen = key_ == "dtype"          ? &entry.has_type
                 : key_ == "shape"        ? &entry.has_shape
                 : key_ == "data_offsets" ? &entry.has_offsets
                                          : nullptr;
    const std::string where = Quoted(key_) + " of tensor " + Quoted(entry.name);
    if (seen == nullptr) return Fail("unknown key " + where, ec);
    if (std::exchange(*seen, true)) return Fail("duplicate key " + where, ec);
    return true;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string key_;
  std::string partial_;
  std::vector<std::uint64_t>* numbers_ = nullptr;
  std::set<std::string> names_;
  std::set<std::string> metadata_keys_;
};

absl::StatusOr<std::vector<RawEntry>> ParseEntries(std::string_view text) {
  if (text.empty() || text.front() != '{') {
    return absl::InvalidArgumentError("the header does not begin with '{'");
  }
  json::parse_options options;
  options.max_depth = 4;
  json::basic_parser<HeaderHandler> parser(options);
  json::error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (ec) {
    std::string& problem = parser.handler().problem;
    if (problem.empty()) {
      problem =
          "the header is not valid JSON at byte " + std::to_string(used) + ": " + ec.message();
    }
    return absl::InvalidArgumentError(problem);
  }
  if (text.find_first_not_of(' ', used) != std::string_view::npos) {
    return absl::InvalidArgumentError("text after the header's JSON object");
  }
  return std::move(parser.handler().entries);
}

absl::StatusOr<TensorInfo> CheckEntry(RawEntry& raw) {
  const std::string who = "tensor " + Quoted(raw.name);
  if (!raw.has_type || !raw.has_shape || !raw.has_offsets || raw.offsets.size() != 2) {
    return absl::InvalidArgumentError(who + " lacks dtype, shape or two data_offsets");
  }
  const StoredType* type = FindStoredType(raw.type);
  if (type == nullptr) {
    return absl::InvalidArgumentError(who + " has the unknown dtype " + Quoted(raw.type));
  }
  std::uint64_t bits = type->bits;
  for (std::uint64_t size : raw.shape) {
    if (__builtin_mul_overflow(bits, size, &bits)) {
      return absl::InvalidArgumentError(who + ": the product of shape " + ShapeText(raw.shape) +
                                        " is beyond 64 bits");
    }
  }
  const auto [begin, end] = std::pair(raw.offsets[0], raw.offsets[1]);
  const std::string offsets = who + ": data_offsets " + ShapeText(raw.offsets);
  if (begin > end) return absl::InvalidArgumentError(offsets + " are not ordered");
  if (bits % 8 != 0 || end - begin != bits / 8) {
    return absl::InvalidArgumentError(who + ": shape " + ShapeText(raw.shape) + " of " + raw.type +
                                      " does not have the " + std::to_string(end - begin) +
                                      " bytes that its data_offsets state");
  }
  // F32, BF16 and F16 are the names of the alias table in capitals; the others are not in it.
  return TensorInfo{std::move(raw.name),  type->name, ParseDType(type->name),
                    std::move(raw.shape), begin,      end - begin};
}

}  // namespace

absl::Status CheckTensorName(std::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError("a tensor has an empty name");
  const std::string who = "tensor name " + Quoted(name);
  if (name.size() > kMaxTensorNameBytes) {
    return absl::InvalidArgumentError(who + " is longer than 512 bytes");
  }
  if (!HasControlCharacter(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(who + " has a control character");
}

absl::Status CutShort(std::uint64_t file_bytes, std::uint64_t header_bytes,
                      std::uint64_t data_bytes) {
  std::uint64_t wanted = 0;
  const bool beyond = __builtin_add_overflow(header_bytes, data_bytes, &wanted);
  return absl::InvalidArgumentError(
      "is cut short: the file has " + std::to_string(file_bytes) + " bytes, its header calls for " +
      (beyond ? "more than 64 bits can count" : std::to_string(wanted)) + "; fetch it again");
}

std::string ShapeText(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

absl::StatusOr<std::vector<TensorInfo>> ParseSafetensorsHeader(std::string_view json,
                                                               std::uint64_t file_bytes_before,
                                                               std::uint64_t data_bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<RawEntry> raw, ParseEntries(json));
  std::vector<TensorInfo> tensors;
  tensors.reserve(raw.size());
  for (RawEntry& entry : raw) {
    PENSTOCK_ASSIGN_OR_RETURN(TensorInfo info, CheckEntry(entry));
    tensors.push_back(std::move(info));
  }
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  std::uint64_t covered = 0;
  for (TensorInfo& info : tensors) {
    if (info.offset != covered) {
      return absl::InvalidArgumentError(
          "tensor " + Quoted(info.name) + " begins at byte " + std::to_string(info.offset) +
          " of the data, which is " + (info.offset < covered ? "an overlap" : "after a hole") +
          ": the tensors before it end at " + std::to_string(covered));
    }
    covered += info.bytes;
    info.offset += file_bytes_before;
  }
  if (covered > data_bytes)
    return CutShort(file_bytes_before + data_bytes, file_bytes_before, covered);
  if (covered != data_bytes) {
    return absl::InvalidArgumentError("the tensors end at byte " + std::to_string(covered) +
                                      " of the data, the file at " + std::to_string(data_bytes));
  }
  return tensors;
}

}  // namespace penstock::shard
