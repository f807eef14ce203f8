#include "common/options/value.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/options/table.h"

namespace penstock::options {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kByteUnits[] = {
    {"KiB", 1024.0},
    {"MiB", 1048576.0},
    {"GiB", 1073741824.0},
    {"TiB", 1099511627776.0},
    {"KB", 1e3},
    {"kB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"K", 1024.0},
    {"M", 1048576.0},
    {"G", 1073741824.0},
    {"T", 1099511627776.0},
    {"B", 1.0},
};

// "us" and "ms" come before "s", since their texts end with it.
constexpr Unit kTimeUnits[] = {
    {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"min", 60.0}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0},
};

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  if (text.find_first_not_of("0123456789.eE+-") != text.npos) return std::nullopt;
  if (text.empty() || !absl::SimpleAtod({text.data(), text.size()}, &value)) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

template <std::size_t N>
std::optional<double> ParseWithUnit(std::string_view text, const Unit (&units)[N]) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    std::optional<double> number = ParseNumber(text.substr(0, text.size() - unit.name.size()));
    if (number.has_value()) return *number * unit.factor;
    return std::nullopt;
  }
  return ParseNumber(text);
}

bool InRange(const OptionSpec& spec, double value) {
  return value >= spec.min && value <= spec.max;
}

std::optional<Parsed> ParseInt(const OptionSpec& spec, std::string_view text) {
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value)) return std::nullopt;
  if (!InRange(spec, static_cast<double>(value))) return std::nullopt;
  return Parsed(value);
}

std::optional<Parsed> ParseFloat(const OptionSpec& spec, std::string_view text) {
  std::optional<double> value = ParseNumber(text);
  if (!value.has_value() || !InRange(spec, *value)) return std::nullopt;
  return Parsed(*value);
}

std::optional<Parsed> ParseBool(std::string_view text) {
  for (std::string_view yes : {"true", "1", "on", "yes"}) {
    if (text == yes) return Parsed(true);
  }
  for (std::string_view no : {"false", "0", "off", "no"}) {
    if (text == no) return Parsed(false);
  }
  return std::nullopt;
}

std::optional<std::int64_t> ParseByteCount(const OptionSpec& spec, std::string_view text) {
  std::optional<double> value = ParseWithUnit(text, kByteUnits);
  if (!value.has_value() || !InRange(spec, *value)) return std::nullopt;
  if (*value < 0 || *value > 9.0e18 || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<Parsed> ParseBytes(const OptionSpec& spec, std::string_view text) {
  std::optional<std::int64_t> bytes = ParseByteCount(spec, text);
  if (!bytes.has_value()) return std::nullopt;
  return Parsed(*bytes);
}

// A number with a percent sign, or a plain one written with a decimal point, is a share.
std::optional<Parsed> ParseMemory(const OptionSpec& spec, std::string_view text) {
  std::optional<double> share;
  if (text.ends_with('%')) {
    share = ParseNumber(text.substr(0, text.size() - 1));
    if (!share.has_value()) return std::nullopt;
    *share /= 100;
  } else if (text.find_first_of(".eE") != text.npos) {
    share = ParseNumber(text);
  }
  if (share.has_value()) {
    if (*share <= 0 || *share > 1) return std::nullopt;
    return Parsed(MemoryAmount{.share = *share});
  }
  std::optional<std::int64_t> bytes = ParseByteCount(spec, text);
  if (!bytes.has_value()) return std::nullopt;
  return Parsed(MemoryAmount{.bytes = *bytes});
}

std::optional<Parsed> ParseDuration(const OptionSpec& spec, std::string_view text) {
  std::optional<double> seconds = ParseWithUnit(text, kTimeUnits);
  if (!seconds.has_value() || !InRange(spec, *seconds)) return std::nullopt;
  if (*seconds < 0 || *seconds > 1e9) return std::nullopt;
  return Parsed(std::chrono::nanoseconds(std::llround(*seconds * 1e9)));
}

std::optional<Parsed> ParseEnum(const OptionSpec& spec, std::string_view text) {
  std::optional<std::string> wanted =
      spec.canonical != nullptr ? spec.canonical(text) : std::string(text);
  if (!wanted.has_value()) return std::nullopt;
  if (std::ranges::count(Pieces(spec.choices), *wanted) == 0) return std::nullopt;
  return Parsed(*std::move(wanted));
}

std::optional<Parsed> ParseList(const OptionSpec& spec, std::string_view text) {
  std::vector<std::string> items =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty());
  if (items.empty()) return std::nullopt;
  const auto fits = [&](const std::string& item) { return ParseInt(spec, item).has_value(); };
  if (HoldsIntegers(spec) && !std::ranges::all_of(items, fits)) return std::nullopt;
  return Parsed(std::move(items));
}

std::optional<Parsed> ParseByType(const OptionSpec& spec, std::string_view text) {
  switch (spec.type) {
    case Type::kString:
    case Type::kPath:
    case Type::kModel:
      return Parsed(std::string(text));
    case Type::kInt:
      return ParseInt(spec, text);
    case Type::kFloat:
      return ParseFloat(spec, text);
    case Type::kBool:
      return ParseBool(text);
    case Type::kBytes:
      return ParseBytes(spec, text);
    case Type::kMemory:
      return ParseMemory(spec, text);
    case Type::kDuration:
      return ParseDuration(spec, text);
    case Type::kEnum:
      return ParseEnum(spec, text);
    case Type::kList:
      return ParseList(spec, text);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Parsed> ParseValue(const OptionSpec& spec, std::string_view text) {
  if (spec.allow_auto && text == "auto") return Parsed(Auto{});
  std::optional<Parsed> parsed;
  if (!text.empty()) parsed = ParseByType(spec, text);
  if (!parsed.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("must be ", DescribeAccepted(spec)));
  }
  return *std::move(parsed);
}

std::string FormatBytes(std::int64_t bytes) {
  constexpr std::pair<const char*, std::int64_t> kUnits[] = {
      {"TiB", std::int64_t{1} << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}};
  for (const auto& [name, size] : kUnits) {
    if (bytes >= size && bytes % size == 0) return absl::StrCat(bytes / size, name);
  }
  return absl::StrCat(bytes);
}

}  // namespace penstock::options
