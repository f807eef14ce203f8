// Typed, range-checked access to one JSON object of a model folder. Each number has a range, since
// numbers in these files size allocations. A key that is null counts as absent.
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/object.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::shard {

// Parses `text` as a JSON object of bounded depth. `file` begins each message.
absl::StatusOr<boost::json::object> ParseConfig(const std::string& text, const std::string& file);

class ConfigReader {
 public:
  // `where` begins each message: "config.json" or "config.json: rope_scaling".
  ConfigReader(const boost::json::object& object, std::string where)
      : object_(&object), where_(std::move(where)) {}

  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // Whether the key is there and null.
  bool IsNull(std::string_view key) const;

  absl::StatusOr<std::uint32_t> Integer(std::string_view key, std::uint32_t low,
                                        std::uint32_t high) const;
  absl::StatusOr<std::uint32_t> IntegerOr(std::string_view key, std::uint32_t absent,
                                          std::uint32_t low, std::uint32_t high) const;
  absl::StatusOr<double> Number(std::string_view key, double low, double high) const;
  absl::StatusOr<double> NumberOr(std::string_view key, double absent, double low,
                                  double high) const;
  absl::StatusOr<bool> BoolOr(std::string_view key, bool absent) const;
  absl::StatusOr<std::string> StringOr(std::string_view key, const std::string& absent) const;
  absl::StatusOr<std::vector<std::string>> StringsOr(std::string_view key) const;  // [] if absent
  absl::StatusOr<std::vector<double>> Numbers(std::string_view key, double low, double high) const;
  absl::StatusOr<std::vector<bool>> FlagsOr(std::string_view key) const;  // of 0 or 1; [] if absent
  // One integer or a list of them, each in [0, limit). Empty if absent.
  absl::StatusOr<std::vector<std::int32_t>> TokenIds(std::string_view key,
                                                     std::uint32_t limit) const;
  // A nested object, if the key is present.
  absl::StatusOr<std::optional<ConfigReader>> Object(std::string_view key) const;

  std::vector<std::string> Keys() const;  // of the whole object, but for those that are null
  // Whether there are no other keys than these: it is not known what they would change.
  absl::Status RefuseOthers(std::initializer_list<std::string_view> known) const;

  // "where: `key` must be limit. Given: value".
  absl::Status Bad(std::string_view key, std::string_view limit) const;
  // The same about one item of a list.
  absl::Status BadItem(std::string_view key, std::size_t index, std::string_view limit) const;

 private:
  const boost::json::value* Find(std::string_view key) const;

  const boost::json::object* object_;
  std::string where_;
};

}  // namespace penstock::shard
