#include "common/json_parse.h"

#include <algorithm>
#include <boost/json/stream_parser.hpp>
#include <string>

#include "common/short_text.h"

namespace penstock {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostShown = 20;

absl::Status BadJson(std::string_view text, std::size_t at, const std::string& reason) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  std::string message =
      "is not valid JSON at line " + std::to_string(line) + ", column " + std::to_string(column);
  const std::string_view rest = text.substr(at);
  if (!rest.empty()) {
    message += " (`" + ShortText(rest.substr(0, rest.find_first_of("\r\n")), kMostShown) + "`)";
  }
  return absl::InvalidArgumentError(message + ": " + reason);
}

}  // namespace

absl::StatusOr<json::value> ParseJson(std::string_view text, std::size_t max_depth) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::stream_parser parser({}, options);
  json::error_code ec;
  const std::size_t used = parser.write(text.data(), text.size(), ec);
  if (!ec) parser.finish(ec);
  if (ec) return BadJson(text, std::min(used, text.size()), ec.message());
  return parser.release();
}

}  // namespace penstock
