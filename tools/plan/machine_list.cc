#include "tools/plan/machine_list.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "scheduler/cost/machine_model.h"
#include "tools/replay/input_file.h"

namespace penstock::plan {
namespace {

constexpr int kMostRanks = 64;  // of a group, as --num-shard
constexpr std::size_t kMostTypes = 64;
constexpr char kFields[] =
    "model, tables, interconnect, count, per_host, price, watts, memory, kv_memory and weights";

// A value at fault; caught in ParseMachines.
struct BadEntry {
  YAML::Mark mark;
  std::string what;
};

std::string Given(const YAML::Node& node) {
  return node.IsScalar() ? node.Scalar().substr(0, 40) : "no plain value";
}

double ReadNumber(const YAML::Node& node, const std::string& field, double least, double most,
                  bool whole = false) {
  double value = 0;
  const bool read = node.IsScalar() && absl::SimpleAtod(node.Scalar(), &value);
  if (read && value >= least && value <= most && (!whole || value == std::floor(value))) {
    return value;
  }
  throw BadEntry{node.Mark(),
                 absl::StrFormat("%s must be a %snumber from %.10g to %.10g. Given: %s", field,
                                 whole ? "whole " : "", least, most, Given(node))};
}

std::string ReadChoice(const YAML::Node& node, const std::string& field,
                       const std::vector<std::string_view>& choices) {
  std::string list;
  for (const std::string_view choice : choices) {
    if (node.IsScalar() && node.Scalar() == choice) return std::string(choice);
    absl::StrAppend(&list, list.empty() ? "" : " or ",
                    absl::string_view(choice.data(), choice.size()));
  }
  throw BadEntry{node.Mark(), field + " must be " + list + ". Given: " + Given(node)};
}

// Calls read(name, value) for each entry. Names are plain and different.
template <class Read>
void ForEachEntry(const YAML::Node& node, const std::string& field, const char* form, Read read) {
  if (!node.IsMap()) throw BadEntry{node.Mark(), field + " must be " + form};
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const YAML::Node& name = entry.first;
    if (!name.IsScalar()) throw BadEntry{name.Mark(), field + " must have plain names"};
    if (!seen.insert(name.Scalar()).second) {
      throw BadEntry{name.Mark(), field + ": " + name.Scalar() + " is given twice"};
    }
    read(name, entry.second);
  }
}

void ReadTables(const YAML::Node& node, const std::string& field, const std::string& folder,
                MachineType& type) {
  ForEachEntry(node, field, "a map from ranks to files, such as {1: one.warmup}",
               [&](const YAML::Node& ranks, const YAML::Node& file) {
                 const double count =
                     ReadNumber(ranks, "the ranks of " + field, 1, kMostRanks, true);
                 if (!file.IsScalar()) throw BadEntry{file.Mark(), field + " must name files"};
                 type.tables[static_cast<int>(count)] =
                     (std::filesystem::path(folder) / file.Scalar()).string();
               });
  if (type.tables.empty()) throw BadEntry{node.Mark(), field + " must name at least one file"};
}

void ReadInterconnect(const YAML::Node& node, const std::string& field, MachineType& type) {
  Interconnect link;
  ForEachEntry(node, field, "a map with latency_us and gb_per_second",
               [&](const YAML::Node& name, const YAML::Node& value) {
                 const std::string part = field + "." + name.Scalar();
                 if (name.Scalar() == "latency_us") {
                   link.latency = Duration(std::llround(1e3 * ReadNumber(value, part, 0, 1e6)));
                 } else if (name.Scalar() == "gb_per_second") {
                   link.bytes_per_second = 1e9 * ReadNumber(value, part, 0.001, 1e5);
                 } else {
                   throw BadEntry{name.Mark(), part + " is unknown; " + field +
                                                   " has latency_us and gb_per_second"};
                 }
               });
  if (link.bytes_per_second == 0) throw BadEntry{node.Mark(), field + " must have gb_per_second"};
  type.interconnect = link;
}

void ReadField(const YAML::Node& name, const YAML::Node& value, const std::string& folder,
               MachineType& type) {
  const std::string& key = name.Scalar();
  const std::string field = type.name + "." + key.substr(0, 40);
  if (key == "model") {
    type.model = ReadChoice(value, field, scheduler::MachineModel::Machines());
  } else if (key == "tables") {
    ReadTables(value, field, folder, type);
  } else if (key == "interconnect") {
    ReadInterconnect(value, field, type);
  } else if (key == "count") {
    type.count = static_cast<std::uint32_t>(ReadNumber(value, field, 1, 4096, true));
  } else if (key == "per_host") {
    type.per_host = static_cast<std::uint32_t>(ReadNumber(value, field, 1, kMostRanks, true));
  } else if (key == "price") {
    type.price = ReadNumber(value, field, 0, 1e6);
  } else if (key == "watts") {
    type.watts = ReadNumber(value, field, 0, 1e6);
  } else if (key == "memory") {
    type.memory = 1e9 * ReadNumber(value, field, 0.001, 1e5);
  } else if (key == "kv_memory") {
    type.kv_memory = 1e9 * ReadNumber(value, field, 0.001, 1e5);
  } else if (key == "weights") {
    type.fp8 = ReadChoice(value, field, {"bf16", "fp8"}) == "fp8";
  } else {
    throw BadEntry{name.Mark(), field + " is unknown; a machine type has " + kFields};
  }
}

MachineType ReadType(const YAML::Node& name, const YAML::Node& node, const std::string& folder) {
  MachineType type;
  type.name = name.Scalar().substr(0, 40);
  ForEachEntry(
      node, type.name, "a map with `count`, and `model` or `tables`",
      [&](const YAML::Node& key, const YAML::Node& value) { ReadField(key, value, folder, type); });
  if (type.model.empty() == type.tables.empty()) {
    throw BadEntry{name.Mark(), type.name + " must have either `model` or `tables`"};
  }
  if (type.interconnect && type.tables.empty()) {
    throw BadEntry{name.Mark(), type.name + ".interconnect is for `tables` only"};
  }
  if (type.fp8 && type.model == "a100") {
    throw BadEntry{name.Mark(), type.name + ".weights must be bf16 with model a100. Given: fp8"};
  }
  return type;
}

std::string Place(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? file : absl::StrCat(file, ":", mark.line + 1);
}

}  // namespace

absl::StatusOr<std::vector<MachineType>> ParseMachines(const std::string& text,
                                                       const std::string& name,
                                                       const std::string& folder) {
  std::vector<MachineType> types;
  try {
    const YAML::Node root = YAML::Load(text);
    ForEachEntry(root, "the list", "a map from names to machine types",
                 [&](const YAML::Node& key, const YAML::Node& node) {
                   types.push_back(ReadType(key, node, folder));
                   types.back().where = Place(name, key.Mark());
                 });
    if (types.empty() || types.size() > kMostTypes) {
      throw BadEntry{root.Mark(), absl::StrCat("the list must have 1 to ", kMostTypes,
                                               " machine types. Given: ", types.size())};
    }
  } catch (const BadEntry& bad) {
    return absl::InvalidArgumentError(Place(name, bad.mark) + ": " + bad.what);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(Place(name, error.mark) + ": not YAML: " + error.msg);
  }
  return types;
}

absl::StatusOr<std::vector<MachineType>> ReadMachines(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, replay::ReadInputFile(path));
  return ParseMachines(text, path, std::filesystem::path(path).parent_path().string());
}

}  // namespace penstock::plan
