#include "launcher/config_file.h"

#include <absl/status/status.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/short_text.h"
#include "launcher/read_file.h"

namespace penstock::launcher {
namespace {

using options::ConfigEntry;

std::string PlaceInFile(const std::string& name, const YAML::Mark& mark) {
  return mark.is_null() ? name : name + ":" + std::to_string(mark.line + 1);
}

// A multi-line text is quoted as one line.
absl::Status Broken(const std::string& where, const std::string& what) {
  constexpr std::size_t kMost = 200;
  return absl::InvalidArgumentError(where + ": " + ShortText(what, kMost));
}

constexpr char kForm[] = "must be lines of `name: value`, such as `port: 3000`";

absl::StatusOr<ConfigEntry> ReadEntry(const YAML::Node& key, const YAML::Node& value,
                                      const std::string& name) {
  ConfigEntry entry;
  entry.where = PlaceInFile(name, key.Mark());
  if (!key.IsScalar()) return Broken(entry.where, kForm);
  entry.key = key.Scalar();
  if (value.IsScalar()) {
    entry.values.push_back(value.Scalar());
  } else if (value.IsSequence()) {
    for (const YAML::Node& item : value) {
      if (!item.IsScalar()) {
        return Broken(entry.where, entry.key + ": must be a list of plain values");
      }
      entry.values.push_back(item.Scalar());
    }
  } else if (value.IsMap()) {
    return Broken(entry.where, entry.key + ": must be a value or a list, not a map");
  }
  return entry;
}

absl::StatusOr<std::vector<ConfigEntry>> ReadMap(const YAML::Node& root, const std::string& name) {
  std::vector<ConfigEntry> entries;
  if (root.IsNull()) return entries;
  if (!root.IsMap()) {
    const std::string given = root.IsScalar() ? ". Given: " + root.Scalar() : "";
    return Broken(PlaceInFile(name, root.Mark()), kForm + given);
  }
  for (const auto& pair : root) {
    absl::StatusOr<ConfigEntry> entry = ReadEntry(pair.first, pair.second, name);
    if (!entry.ok()) return entry.status();
    const auto first = std::ranges::find(entries, entry->key, &ConfigEntry::key);
    if (first != entries.end()) {
      return Broken(entry->where, entry->key + ": is given twice, first at " + first->where);
    }
    if (!entry->values.empty()) entries.push_back(*std::move(entry));
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ParseConfigText(const std::string& text,
                                                         const std::string& name) {
  try {
    return ReadMap(YAML::Load(text), name);
  } catch (const YAML::Exception& error) {
    return Broken(PlaceInFile(name, error.mark), "not YAML: " + error.msg);
  }
}

absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, "--config " + path + ":");
  if (!text.ok()) return text.status();
  return ParseConfigText(*text, path);
}

}  // namespace penstock::launcher
