#include "common/json_text.h"

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace penstock {
namespace {

namespace json = boost::json;

// Longer numbers are harder to read without an exponent than with one.
constexpr double kLeastPlain = 1e-12;
constexpr double kMostPlain = 1e21;

double Rounded(double value, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return std::strtod(text.data(), nullptr);
}

void AppendValue(std::string& out, const json::value& value);

void AppendNumber(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::string text = NumberText(value);
  out += text;
  if (text.find_first_of(".e") == text.npos) out += ".0";
}

void AppendObject(std::string& out, const json::object& object) {
  char separator = '{';
  for (const auto& [key, value] : object) {
    out += separator;
    out += json::serialize(key);
    out += ':';
    AppendValue(out, value);
    separator = ',';
  }
  out += object.empty() ? "{}" : "}";
}

void AppendArray(std::string& out, const json::array& array) {
  char separator = '[';
  for (const json::value& value : array) {
    out += separator;
    AppendValue(out, value);
    separator = ',';
  }
  out += array.empty() ? "[]" : "]";
}

void AppendValue(std::string& out, const json::value& value) {
  if (value.is_double()) return AppendNumber(out, value.get_double());
  if (value.is_object()) return AppendObject(out, value.get_object());
  if (value.is_array()) return AppendArray(out, value.get_array());
  out += json::serialize(value);
}

}  // namespace

std::string NumberText(double value, int digits) {
  if (digits > 0) value = Rounded(value, digits);
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= kLeastPlain && size < kMostPlain);
  std::array<char, 64> text;
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
  return {text.data(), end};
}

std::string JsonText(const json::value& value) {
  std::string out;
  AppendValue(out, value);
  return out;
}

}  // namespace penstock
