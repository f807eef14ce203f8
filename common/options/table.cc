#include "common/options/table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/edit_distance.h"
#include "common/json_text.h"
#include "common/options/rows/rows.h"
#include "common/options/tgi.h"
#include "common/options/value.h"

namespace penstock::options {
namespace {

void Append(std::vector<OptionSpec>& table, std::string_view group,
            std::span<const OptionSpec> rows) {
  for (OptionSpec row : rows) {
    row.group = group;
    table.push_back(row);
  }
}

std::vector<OptionSpec> BuildTable() {
  std::vector<OptionSpec> table;
  Append(table, "Choose a model", ModelRows());
  Append(table, "Use the machine", MachineRows());
  Append(table, "Reach the server", ServerRows());
  Append(table, "Replace another server", CompatibilityRows());
  Append(table, "Limit requests", LimitRows());
  Append(table, "Tune scheduling", SchedulingRows());
  Append(table, "Start and stop", ProcessRows());
  Append(table, "Watch the server", LogRows());
  Append(table, "Simulation", SimulationRows());
  Append(table, "text-generation-inference", TgiRows());
  Append(table, "Program", ProgramRows());
  return table;
}

struct ComponentText {
  Components bit;
  std::string_view name;
  std::string_view summary;
};

constexpr ComponentText kComponentTexts[] = {
    {kLauncher, "penstock-launcher",
     "Starts, watches and stops a server: one router and the shards of the model."},
    {kRouter, "penstock-router", "Serves HTTP clients and sends each step to the shards."},
    {kShard, "penstock-shard", "Runs one rank of the model and holds its KV cache."},
    {kSimshard, "penstock-simshard",
     "Simulates shards without a model: the same protocol, made-up tokens."},
};

std::string Canonical(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool HasName(const OptionSpec& spec, std::string_view name) {
  return spec.name == name || std::ranges::count(Pieces(spec.aliases), name) > 0;
}

std::string DescribeNumber(const OptionSpec& spec, double value) {
  if (spec.type == Type::kBytes || spec.type == Type::kMemory) {
    return FormatBytes(static_cast<std::int64_t>(value));
  }
  if (spec.type == Type::kDuration) return absl::StrCat(static_cast<std::int64_t>(value), "s");
  if (spec.type == Type::kInt) return absl::StrCat(static_cast<std::int64_t>(value));
  return NumberText(value);
}

std::string DescribeRange(const OptionSpec& spec) {
  const bool has_min = spec.min != -kNoLimit;
  const bool has_max = spec.max != kNoLimit;
  if (has_min && has_max) {
    return absl::StrCat(" from ", DescribeNumber(spec, spec.min), " to ",
                        DescribeNumber(spec, spec.max));
  }
  if (has_min) return absl::StrCat(" of at least ", DescribeNumber(spec, spec.min));
  if (has_max) return absl::StrCat(" of at most ", DescribeNumber(spec, spec.max));
  return "";
}

std::string DescribeChoices(std::string_view choices) {
  const std::vector<std::string_view> pieces = Pieces(choices);
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) text += i + 1 == pieces.size() ? " or " : ", ";
    text += pieces[i];
  }
  return text;
}

std::string DescribeType(const OptionSpec& spec) {
  switch (spec.type) {
    case Type::kString:
      return ChoicesOf(spec).empty() ? "a non-empty text" : DescribeChoices(ChoicesOf(spec));
    case Type::kPath:
      return "a path";
    case Type::kModel:
      return "a folder or, for the launcher, a model id (org/name)";
    case Type::kInt:
      return "an integer" + DescribeRange(spec);
    case Type::kFloat:
      return "a number" + DescribeRange(spec);
    case Type::kBool:
      return "true or false";
    case Type::kBytes:
      return "a number of bytes (65536, 64KiB, 16MiB)" + DescribeRange(spec);
    case Type::kMemory:
      return "a number of bytes (8GiB)" + DescribeRange(spec) +
             ", a share above 0 and up to 1.0 (0.5) or a percentage (50%)";
    case Type::kDuration:
      return "a duration (90s, 250ms, 5m)" + DescribeRange(spec);
    case Type::kEnum:
      return DescribeChoices(spec.choices);
    case Type::kList:
      return (HoldsIntegers(spec) ? "a list of integers" + DescribeRange(spec)
                                  : std::string("a list of texts")) +
             " separated by commas";
  }
  return "";
}

}  // namespace

std::vector<std::string_view> Pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    pieces.push_back(text.substr(0, text.find('|')));
    text.remove_prefix(std::min(text.size(), pieces.back().size() + 1));
  }
  return pieces;
}

bool DoesNothing(const OptionSpec& spec) {
  const bool refused =
      !spec.refusal.empty() && (spec.harmless.empty() || spec.harmless == spec.default_text);
  return refused || !spec.no_effect.empty();
}

std::string_view ChoicesOf(const OptionSpec& spec) {
  if (spec.type == Type::kEnum) return spec.choices;
  const bool some = spec.type == Type::kString && !spec.refusal.empty() && !DoesNothing(spec);
  return some ? spec.harmless : "";
}

const std::vector<OptionSpec>& Table() {
  static const std::vector<OptionSpec>& table = *new std::vector<OptionSpec>(BuildTable());
  return table;
}

ProgramOptions ProgramFor(Components component) {
  ProgramOptions program;
  program.component = component;
  for (const ComponentText& text : kComponentTexts) {
    if (text.bit != component) continue;
    program.name = text.name;
    program.summary = text.summary;
  }
  for (const OptionSpec& spec : Table()) {
    if ((spec.components & component) != 0) program.options.push_back(&spec);
  }
  return program;
}

ProgramOptions ProgramAs(Components component, std::string_view started_as) {
  ProgramOptions program = ProgramFor(component);
  const std::string_view name = started_as.substr(started_as.rfind('/') + 1);
  const Profile* profile = FindTgiProfile(name);
  if (profile == nullptr || profile->component != component) return program;
  program.name = profile->name;
  program.profile = profile;
  return program;
}

std::string_view ShownName(std::string_view started_as, std::string_view name) {
  return started_as.starts_with("penstock ") ? started_as : name;
}

ProgramOptions ProgramWith(std::string_view name, std::string_view summary,
                           std::span<const OptionSpec> rows) {
  ProgramOptions program;
  program.component = kTool;
  program.name = name;
  program.summary = summary;
  for (const OptionSpec& spec : Table()) {
    if ((spec.components & kTool) != 0) program.options.push_back(&spec);
  }
  for (const OptionSpec& spec : rows) program.options.push_back(&spec);
  return program;
}

bool HidesOptions(const ProgramOptions& program) {
  return std::ranges::any_of(program.options, [](const OptionSpec* spec) {
    return spec->advanced || spec->set_by_launcher;
  });
}

const OptionSpec* Find(const ProgramOptions& program, std::string_view name) {
  const std::string wanted = Canonical(name);
  for (const OptionSpec* spec : program.options) {
    if (HasName(*spec, wanted)) return spec;
  }
  return nullptr;
}

const OptionSpec* FindShort(const ProgramOptions& program, char short_name) {
  for (const OptionSpec* spec : program.options) {
    if (spec->short_name == short_name) return spec;
  }
  return nullptr;
}

std::string EnvironmentName(const OptionSpec& spec) {
  return std::string(kVariablePrefix) + absl::AsciiStrToUpper(YamlKey(spec));
}

std::vector<std::string> EnvironmentNames(const OptionSpec& spec) {
  std::vector<std::string> names = {EnvironmentName(spec)};
  OptionSpec other = spec;
  for (const std::string_view alias : Pieces(spec.aliases)) {
    other.name = alias;
    names.push_back(EnvironmentName(other));
  }
  return names;
}

std::string YamlKey(const OptionSpec& spec) {
  std::string key(spec.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

bool HoldsIntegers(const OptionSpec& spec) {
  return spec.type == Type::kList && spec.min != -kNoLimit;
}

std::string DescribeAccepted(const OptionSpec& spec) {
  return (spec.allow_auto ? "auto or " : "") + DescribeType(spec);
}

std::string_view Nearest(const ProgramOptions& program, std::string_view name) {
  const std::string wanted = Canonical(name);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const OptionSpec* spec : program.options) {
    auto consider = [&](std::string_view candidate) {
      const bool cut_off = wanted.size() >= 4 && candidate.starts_with(wanted);
      const std::size_t distance = cut_off ? 1 : EditDistance(wanted, candidate);
      if (distance < best_distance) {
        best_distance = distance;
        best = candidate;
      }
    };
    consider(spec->name);
    std::ranges::for_each(Pieces(spec->aliases), consider);
  }
  return best;
}

}  // namespace penstock::options
