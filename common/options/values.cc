#include "common/options/values.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::options {
namespace {

[[noreturn]] void Misuse(std::string_view name, const char* what) {
  std::fprintf(stderr, "option %.*s: %s\n", static_cast<int>(name.size()), name.data(), what);
  std::abort();
}

// The text that ParseValue reads back as the same value; aliases of an enum become its canonical
// spelling.
std::string CanonicalText(const Parsed& value, std::string_view text) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* choice = std::get_if<std::string>(&value)) return *choice;
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    return absl::StrJoin(*list, ",");
  }
  return std::string(text);
}

}  // namespace

std::string_view SourceName(Source source) {
  constexpr std::string_view kNames[] = {"default",     "profile",      "config file",
                                         "environment", "command line", "derived"};
  return kNames[static_cast<std::size_t>(source)];
}

Values::Values(ProgramOptions program) : program_(std::move(program)) {
  for (const OptionSpec* spec : program_.options) {
    Entry& entry = entries_[std::string(spec->name)];
    entry.spec = spec;
    if (spec->default_text.empty()) continue;
    absl::StatusOr<Parsed> parsed = ParseValue(*spec, spec->default_text);
    if (!parsed.ok()) Misuse(spec->name, "its default is not a value that it accepts");
    entry.text = CanonicalText(*parsed, spec->default_text);
    entry.value = *std::move(parsed);
  }
}

const Values::Entry& Values::At(std::string_view name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) Misuse(name, "is not in this program's table");
  return found->second;
}

template <typename T>
const T& Values::As(std::string_view name) const {
  const T* value = std::get_if<T>(&At(name).value);
  if (value == nullptr) Misuse(name, "was read as another type, or has no value");
  return *value;
}

std::int64_t Values::GetInt(std::string_view name) const { return As<std::int64_t>(name); }
double Values::GetDouble(std::string_view name) const { return As<double>(name); }
bool Values::GetBool(std::string_view name) const { return As<bool>(name); }
std::int64_t Values::GetBytes(std::string_view name) const { return As<std::int64_t>(name); }

std::chrono::nanoseconds Values::GetDuration(std::string_view name) const {
  return As<std::chrono::nanoseconds>(name);
}

const std::string& Values::GetString(std::string_view name) const {
  static const std::string& empty = *new std::string;
  return HasValue(name) ? As<std::string>(name) : empty;
}

const std::vector<std::string>& Values::GetList(std::string_view name) const {
  static const std::vector<std::string>& empty = *new std::vector<std::string>;
  return HasValue(name) ? As<std::vector<std::string>>(name) : empty;
}

std::optional<std::int64_t> Values::FindInt(std::string_view name) const {
  const Parsed& value = At(name).value;
  if (!HasValue(name) || std::holds_alternative<Auto>(value)) return std::nullopt;
  return As<std::int64_t>(name);
}

std::optional<MemoryAmount> Values::FindMemory(std::string_view name) const {
  const Parsed& value = At(name).value;
  if (!HasValue(name) || std::holds_alternative<Auto>(value)) return std::nullopt;
  return As<MemoryAmount>(name);
}

bool Values::IsSet(std::string_view name) const {
  const Source source = At(name).source;
  return source != Source::kDefault && source != Source::kProfile;
}

bool Values::HasValue(std::string_view name) const {
  return !std::holds_alternative<std::monostate>(At(name).value);
}

Source Values::SourceOf(std::string_view name) const { return At(name).source; }

const std::string& Values::WhereOf(std::string_view name) const { return At(name).where; }

const std::string& Values::TextOf(std::string_view name) const { return At(name).text; }

absl::Status Values::Set(std::string_view name, std::string_view text, Source source,
                         std::string_view where) {
  auto found = entries_.find(name);
  if (found == entries_.end()) Misuse(name, "is not in this program's table");
  Entry& entry = found->second;
  absl::StatusOr<Parsed> parsed = ParseValue(*entry.spec, text);
  if (!parsed.ok()) return parsed.status();
  entry.text = CanonicalText(*parsed, text);
  entry.value = *std::move(parsed);
  entry.source = source;
  entry.where = std::string(where);
  return absl::OkStatus();
}

std::vector<std::string> Values::ToArgv(Components component) const {
  std::vector<std::string> arguments;
  for (const OptionSpec* spec : program_.options) {
    const Entry& entry = At(spec->name);
    if ((spec->components & component) == 0 || entry.source == Source::kDefault) continue;
    if (spec->group == "Program" || spec->secret) continue;
    if (!spec->no_effect.empty()) continue;  // said once
    arguments.push_back(absl::StrCat("--", std::string(spec->name), "=", entry.text));
  }
  return arguments;
}

std::vector<std::string> Values::ToEnvironment(Components component) const {
  std::vector<std::string> variables;
  for (const OptionSpec* spec : program_.options) {
    const Entry& entry = At(spec->name);
    if (!spec->secret || (spec->components & component) == 0) continue;
    // An empty one hides what the parent's environment says.
    variables.push_back(absl::StrCat(EnvironmentName(*spec), "=", entry.text));
  }
  return variables;
}

bool Values::IsMissing(const OptionSpec& spec) const {
  return (spec.required & program_.component) != 0 && !HasValue(spec.name);
}

std::string Values::DescribeOne(const OptionSpec& spec) const {
  const Entry& entry = At(spec.name);
  std::string shown = spec.secret ? "***" : entry.text;
  if (!HasValue(spec.name)) shown = IsMissing(spec) ? "(missing)" : "(unset)";
  std::string line = absl::StrCat(std::string(spec.name), " = ", shown);
  line.resize(std::max<std::size_t>(line.size() + 2, 50), ' ');
  line += std::string(SourceName(entry.source));
  if (!entry.where.empty()) line += " (" + entry.where + ")";
  return line + "\n";
}

std::string Values::Describe() const {
  std::string given;
  std::string rest;
  for (const OptionSpec* spec : program_.options) {
    if (spec->group == "Program" && spec->name != "config") continue;
    const bool by_default = SourceOf(spec->name) == Source::kDefault && !IsMissing(*spec);
    (by_default ? rest : given) += DescribeOne(*spec);
  }
  return given.empty() ? rest : given + "\n" + rest;
}

}  // namespace penstock::options
