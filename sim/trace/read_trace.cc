#include "sim/trace/read_trace.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "common/json_text.h"

namespace penstock::sim {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLine = 1 << 20;

// Where a row is, for error messages.
struct Place {
  const std::string& name;
  std::uint64_t line = 0;

  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError("`" + name + "` line " + std::to_string(line) + ": " + what);
  }
  absl::Status Bad(std::string_view field, const std::string& rule, std::string_view given) const {
    return Error("`" + std::string(field) + "` must be " + rule + ". Given: `" +
                 std::string(given.substr(0, 40)) + "`");
  }
};

std::string Range(std::uint64_t low, std::uint64_t high) {
  return "a whole number of " + std::to_string(low) + " to " + std::to_string(high);
}

std::optional<std::int64_t> ToInt(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<std::uint32_t> ToTokens(const Place& place, std::string_view field,
                                       std::string_view text) {
  const auto value = ToInt(text);
  if (!value || *value < 1 || *value > kMaxTraceTokens) {
    return place.Bad(field, Range(1, kMaxTraceTokens), text);
  }
  return static_cast<std::uint32_t>(*value);
}

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

// "2023-11-16 18:15:46.6805900" as a time since 1970, without a time zone.
std::optional<Duration> ToStamp(std::string_view text) {
  if (text.size() < 19 || text.size() > 29 || text[4] != '-' || text[7] != '-' || text[10] != ' ' ||
      text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  constexpr std::array<std::array<std::size_t, 2>, 6> kFields = {
      {{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}}};
  std::array<std::int64_t, 6> value{};
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    const auto part = ToInt(text.substr(kFields[i][0], kFields[i][1]));
    if (!part || *part < 0) return std::nullopt;
    value[i] = *part;
  }
  std::int64_t fraction = 0;
  if (text.size() > 19) {
    std::string digits(text.substr(20));
    digits.resize(9, '0');
    const auto part = ToInt(digits);
    if (text[19] != '.' || !part || *part < 0) return std::nullopt;
    fraction = *part;
  }
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(value[0])),
                                         std::chrono::month(static_cast<unsigned>(value[1])),
                                         std::chrono::day(static_cast<unsigned>(value[2]))};
  if (!date.ok() || value[3] > 23 || value[4] > 59 || value[5] > 60) return std::nullopt;
  return Duration(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(value[3]) +
                  std::chrono::minutes(value[4]) + std::chrono::seconds(value[5])) +
         Duration(fraction);
}

// Columns of a CSV with lengths.
struct Columns {
  std::optional<std::size_t> stamp;
  std::size_t prompt = 0;
  std::size_t output = 0;
};

std::optional<Columns> FindColumns(std::string_view header) {
  const std::vector<std::string_view> names = Split(header);
  const auto find = [&names](std::string_view a, std::string_view b) -> std::optional<std::size_t> {
    const auto it = std::find_if(names.begin(), names.end(),
                                 [a, b](std::string_view n) { return n == a || n == b; });
    if (it == names.end()) return std::nullopt;
    return static_cast<std::size_t>(it - names.begin());
  };
  const auto prompt = find("ContextTokens", "num_prefill_tokens");
  const auto output = find("GeneratedTokens", "num_decode_tokens");
  if (!prompt || !output) return std::nullopt;
  return Columns{find("TIMESTAMP", "TIMESTAMP"), *prompt, *output};
}

absl::StatusOr<TraceRequest> ParseCsvRow(const Place& place, const Columns& columns,
                                         std::string_view line) {
  const std::vector<std::string_view> cells = Split(line);
  const std::size_t wanted =
      std::max({columns.stamp.value_or(0), columns.prompt, columns.output}) + 1;
  if (cells.size() < wanted) {
    return place.Error("a row must have " + std::to_string(wanted) +
                       " cells. Given: " + std::to_string(cells.size()));
  }
  TraceRequest request;
  // A time without digits is a placeholder in a file that has lengths only.
  if (columns.stamp &&
      cells[*columns.stamp].find_first_of("0123456789") != std::string_view::npos) {
    const auto stamp = ToStamp(cells[*columns.stamp]);
    if (!stamp) {
      return place.Bad("TIMESTAMP", "of the form 2023-11-16 18:15:46.6805900",
                       cells[*columns.stamp]);
    }
    request.arrival = *stamp;
  }
  const auto prompt = ToTokens(place, "prompt tokens", cells[columns.prompt]);
  if (!prompt.ok()) return prompt.status();
  const auto output = ToTokens(place, "output tokens", cells[columns.output]);
  if (!output.ok()) return output.status();
  request.prompt_tokens = *prompt;
  request.output_tokens = *output;
  return request;
}

// Reads an integer in [low, high]. Other values are an error that names the field.
absl::StatusOr<std::uint64_t> Number(const Place& place, const json::object& row,
                                     std::string_view field, std::uint64_t low,
                                     std::uint64_t high) {
  const json::value* value = row.if_contains({field.data(), field.size()});
  if (value == nullptr) return place.Error("`" + std::string(field) + "` is missing");
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  if (error || number < static_cast<std::int64_t>(low) ||
      number > static_cast<std::int64_t>(high)) {
    return place.Bad(field, Range(low, high), JsonText(*value));
  }
  return static_cast<std::uint64_t>(number);
}

absl::StatusOr<std::vector<std::uint32_t>> Blocks(const Place& place, const json::object& row,
                                                  std::uint64_t wanted) {
  const json::value* ids = row.if_contains("hash_ids");
  if (ids == nullptr || !ids->is_array()) return place.Error("`hash_ids` must be an array");
  if (ids->get_array().size() != wanted) {
    return place.Error(
        "`hash_ids` must have " + std::to_string(wanted) +
        " entries (one per 512 tokens). Given: " + std::to_string(ids->get_array().size()));
  }
  std::vector<std::uint32_t> blocks;
  blocks.reserve(wanted);
  for (const json::value& id : ids->get_array()) {
    boost::system::error_code error;
    const auto number = id.to_number<std::int64_t>(error);
    if (error || number < 0 || number > UINT32_MAX) {
      return place.Bad("hash_ids", Range(0, UINT32_MAX), JsonText(id));
    }
    blocks.push_back(static_cast<std::uint32_t>(number));
  }
  return blocks;
}

absl::StatusOr<TraceRequest> ParseJsonRow(const Place& place, std::string_view line) {
  boost::system::error_code error;
  const json::value value = json::parse({line.data(), line.size()}, error);
  if (error || !value.is_object()) return place.Error("a row must be one JSON object");
  const json::object& row = value.get_object();
  constexpr std::uint64_t kYear = 366ULL * 24 * 3600 * 1000;
  const auto stamp = Number(place, row, "timestamp", 0, kYear);
  if (!stamp.ok()) return stamp.status();
  const auto prompt = Number(place, row, "input_length", 1, kMaxTraceTokens);
  if (!prompt.ok()) return prompt.status();
  const auto output = Number(place, row, "output_length", 1, kMaxTraceTokens);
  if (!output.ok()) return output.status();
  auto blocks = Blocks(place, row, (*prompt + 511) / 512);
  if (!blocks.ok()) return blocks.status();
  TraceRequest request;
  request.arrival = std::chrono::milliseconds(*stamp);
  request.prompt_tokens = static_cast<std::uint32_t>(*prompt);
  request.output_tokens = static_cast<std::uint32_t>(*output);
  request.blocks = *std::move(blocks);
  return request;
}

// Times count from the first row. Rows of the same time keep their order.
absl::StatusOr<Trace> Finish(Trace trace, const Place& place) {
  if (trace.requests.empty()) return place.Error("the trace holds no request");
  std::stable_sort(
      trace.requests.begin(), trace.requests.end(),
      [](const TraceRequest& a, const TraceRequest& b) { return a.arrival < b.arrival; });
  const Duration start = trace.requests.front().arrival;
  for (TraceRequest& request : trace.requests) request.arrival -= start;
  return trace;
}

}  // namespace

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("cannot open `" + path + "`");
  return ReadTrace(file, path);
}

absl::StatusOr<Trace> ReadTrace(std::istream& in, const std::string& name) {
  Trace trace;
  Place place{name};
  std::optional<Columns> columns;
  std::string line;
  while (std::getline(in, line)) {
    ++place.line;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (line.size() > kMaxLine) return place.Error("a line must have <= 1048576 characters");
    const bool is_json = line.front() == '{';
    if (!is_json && !columns) {
      columns = FindColumns(line);
      if (!columns) {
        return place.Error(
            "neither a Mooncake row nor a header with ContextTokens,GeneratedTokens or "
            "num_prefill_tokens,num_decode_tokens");
      }
      continue;
    }
    if (trace.requests.size() >= kMaxTraceRequests) {
      return place.Error("a trace must have <= " + std::to_string(kMaxTraceRequests) + " rows");
    }
    auto request = is_json ? ParseJsonRow(place, line) : ParseCsvRow(place, *columns, line);
    if (!request.ok()) return request.status();
    trace.requests.push_back(*std::move(request));
  }
  return Finish(std::move(trace), place);
}

}  // namespace penstock::sim
