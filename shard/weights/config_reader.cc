#include "shard/weights/config_reader.h"

#include <algorithm>
#include <cmath>

#include "common/json_parse.h"
#include "common/json_text.h"
#include "common/short_text.h"
#include "common/status.h"

namespace penstock::shard {

namespace json = boost::json;

namespace {

constexpr std::size_t kMostShown = 100;  // bytes of a bad value

}  // namespace

absl::StatusOr<json::object> ParseConfig(const std::string& text, const std::string& file) {
  constexpr std::size_t kMaxDepth = 32;
  auto root = ParseJson(text, kMaxDepth);
  if (!root.ok()) return WithContext(root.status(), file);
  if (!root->is_object()) return absl::InvalidArgumentError(file + ": is not a JSON object");
  return std::move(root->get_object());
}

const json::value* ConfigReader::Find(std::string_view key) const {
  const json::value* value = object_->if_contains(json::string_view(key.data(), key.size()));
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool ConfigReader::IsNull(std::string_view key) const {
  return !Has(key) && object_->contains(json::string_view(key.data(), key.size()));
}

absl::Status ConfigReader::Bad(std::string_view key, std::string_view limit) const {
  const json::value* value = Find(key);
  const std::string given = value == nullptr ? "nothing" : ShortText(JsonText(*value), kMostShown);
  return WithContext(BadValue(key, given, limit), where_);
}

absl::Status ConfigReader::BadItem(std::string_view key, std::size_t index,
                                   std::string_view limit) const {
  const json::value* value = Find(key);
  const json::value* item =
      value == nullptr || !value->is_array() ? nullptr : value->get_array().if_contains(index);
  if (item == nullptr) return Bad(key, limit);
  const std::string name = std::string(key) + "[" + std::to_string(index) + "]";
  return WithContext(BadValue(name, ShortText(JsonText(*item), kMostShown), limit), where_);
}

absl::StatusOr<std::uint32_t> ConfigReader::Integer(std::string_view key, std::uint32_t low,
                                                    std::uint32_t high) const {
  const json::value* value = Find(key);
  if (value == nullptr || !value->is_int64() || value->get_int64() < low ||
      value->get_int64() > high) {
    return Bad(key, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return static_cast<std::uint32_t>(value->get_int64());
}

absl::StatusOr<std::uint32_t> ConfigReader::IntegerOr(std::string_view key, std::uint32_t absent,
                                                      std::uint32_t low, std::uint32_t high) const {
  if (!Has(key)) return absent;
  return Integer(key, low, high);
}

absl::StatusOr<double> ConfigReader::Number(std::string_view key, double low, double high) const {
  const json::value* value = Find(key);
  if (value != nullptr && value->is_number()) {
    const double number = value->to_number<double>();
    if (number >= low && number <= high) return number;
  }
  return Bad(key, "a number from " + NumberText(low) + " to " + NumberText(high));
}

absl::StatusOr<double> ConfigReader::NumberOr(std::string_view key, double absent, double low,
                                              double high) const {
  if (!Has(key)) return absent;
  return Number(key, low, high);
}

absl::StatusOr<bool> ConfigReader::BoolOr(std::string_view key, bool absent) const {
  const json::value* value = Find(key);
  if (value == nullptr) return absent;
  if (!value->is_bool()) return Bad(key, "true or false");
  return value->get_bool();
}

absl::StatusOr<std::string> ConfigReader::StringOr(std::string_view key,
                                                   const std::string& absent) const {
  const json::value* value = Find(key);
  if (value == nullptr) return absent;
  if (!value->is_string()) return Bad(key, "a string");
  return std::string(value->get_string().c_str());
}

absl::StatusOr<std::vector<std::string>> ConfigReader::StringsOr(std::string_view key) const {
  std::vector<std::string> strings;
  const json::value* value = Find(key);
  if (value == nullptr) return strings;
  if (!value->is_array()) return Bad(key, "a list of strings");
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) return Bad(key, "a list of strings");
    strings.emplace_back(item.get_string().c_str());
  }
  return strings;
}

absl::StatusOr<std::vector<double>> ConfigReader::Numbers(std::string_view key, double low,
                                                          double high) const {
  std::vector<double> numbers;
  const json::value* value = Find(key);
  if (value == nullptr || !value->is_array()) return Bad(key, "a list of numbers");
  for (const json::value& item : value->get_array()) {
    boost::system::error_code ec;
    const double number = item.to_number<double>(ec);
    if (ec || !(number >= low && number <= high)) {
      return Bad(key,
                 "a list of numbers from " + std::to_string(low) + " to " + std::to_string(high));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::vector<bool>> ConfigReader::FlagsOr(std::string_view key) const {
  std::vector<bool> flags;
  const json::value* value = Find(key);
  if (value == nullptr) return flags;
  if (!value->is_array()) return Bad(key, "a list of 0 and 1");
  for (const json::value& item : value->get_array()) {
    if (!item.is_int64() || (item.get_int64() != 0 && item.get_int64() != 1)) {
      return Bad(key, "a list of 0 and 1");
    }
    flags.push_back(item.get_int64() == 1);
  }
  return flags;
}

absl::StatusOr<std::vector<std::int32_t>> ConfigReader::TokenIds(std::string_view key,
                                                                 std::uint32_t limit) const {
  std::vector<std::int32_t> ids;
  const json::value* value = Find(key);
  if (value == nullptr) return ids;
  const auto add = [&ids, limit](const json::value& item) {
    if (!item.is_int64() || item.get_int64() < 0 || item.get_int64() >= limit) return false;
    ids.push_back(static_cast<std::int32_t>(item.get_int64()));
    return true;
  };
  bool good = true;
  if (value->is_array()) {
    for (const json::value& item : value->get_array()) good = good && add(item);
  } else {
    good = add(*value);
  }
  if (!good) {
    return Bad(key, "a token id or a list of them below `vocab_size` " + std::to_string(limit));
  }
  return ids;
}

absl::StatusOr<std::optional<ConfigReader>> ConfigReader::Object(std::string_view key) const {
  const json::value* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) return Bad(key, "an object");
  return ConfigReader(value->get_object(), where_ + ": " + std::string(key));
}

std::vector<std::string> ConfigReader::Keys() const {
  std::vector<std::string> keys;
  for (const auto& member : *object_) {
    if (!member.value().is_null()) keys.emplace_back(member.key());
  }
  return keys;
}

absl::Status ConfigReader::RefuseOthers(std::initializer_list<std::string_view> known) const {
  for (const std::string& key : Keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return Bad(ShortText(key, kMostShown), "absent: Penstock does not know what it changes");
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
