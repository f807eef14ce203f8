// --help and docs/api/options.md.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/options/table.h"
#include "common/options/value.h"

namespace penstock::options {
namespace {

constexpr std::size_t kHelpColumn = 30;
constexpr std::size_t kHelpWidth = 100;

// By Type.
constexpr std::string_view kPlaceholders[] = {"TEXT",  "PATH",   "MODEL", "N",      "X",  "",
                                              "BYTES", "AMOUNT", "TIME",  "CHOICE", "A,B"};

// Breaks `text` into lines that end before kHelpWidth, each after the first indented by `column`.
std::string Wrap(std::string_view text, std::size_t column) {
  std::string out;
  std::size_t width = column;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (width + word.size() > kHelpWidth) {
      out += "\n" + std::string(column, ' ');
      width = column;
    } else if (width > column) {
      out += ' ';
    }
    out += word;
    width += word.size() + 1;
  }
  return out;
}

std::string_view DefaultIn(const ProgramOptions& program, const OptionSpec& spec) {
  if (program.profile != nullptr) {
    for (const Preset& preset : program.profile->presets) {
      if (preset.option == spec.name) return preset.text;
    }
  }
  return spec.default_text;
}

std::string Meaning(const OptionSpec& spec) {
  std::string text(spec.help);
  if (!DoesNothing(spec)) return text;
  return absl::StrCat(text, spec.no_effect.empty() ? " Not offered: " : " Has no effect: ",
                      std::string(spec.no_effect.empty() ? spec.refusal : spec.no_effect), ".");
}

std::string Details(const ProgramOptions& program, const OptionSpec& spec) {
  std::string details = Meaning(spec);
  // The meaning of a true|false option already names both values.
  const std::string_view choices = ChoicesOf(spec);
  if (choices.find('|') != choices.npos && choices != "true|false") {
    details += " One of " + DescribeAccepted(spec) + ".";
  }
  // "Program" rows, such as --help, are no settings.
  const std::string fallback(DefaultIn(program, spec));
  const bool required = (spec.required & program.component) != 0;
  if (spec.group == "Program") return details;
  if (!fallback.empty()) {
    const bool on = spec.type == Type::kBool && fallback == "true";
    details += " [" + fallback + (on ? "; --no-" + std::string(spec.name) : "") + "]";
  } else if (!required && details.find("nset: ") == details.npos) {
    details += " [unset]";
  }
  return required ? details + " [required]" : details;
}

std::string HelpEntry(const ProgramOptions& program, const OptionSpec& spec) {
  std::string head = spec.short_name != 0 ? std::string("  -") + spec.short_name + ", " : "      ";
  head += "--" + std::string(spec.name);
  if (spec.flag_text.empty()) {
    const Type shown = ChoicesOf(spec).empty() ? spec.type : Type::kEnum;
    head += " " + std::string(kPlaceholders[static_cast<std::size_t>(shown)]);
  }
  if (head.size() + 2 > kHelpColumn) {
    head += "\n" + std::string(kHelpColumn, ' ');
  } else {
    head.resize(kHelpColumn, ' ');
  }
  return head + Wrap(Details(program, spec), kHelpColumn) + "\n";
}

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

bool IsCommon(std::string_view which) { return which.empty() || which == "common"; }

bool ShowsAll(const ProgramOptions& program, std::string_view which) {
  return which == "all" || (IsCommon(which) && !HidesOptions(program));
}

bool Shown(const ProgramOptions& program, const OptionSpec& spec, std::string_view which) {
  if (spec.set_by_launcher && program.component == kLauncher) return false;
  if (ShowsAll(program, which)) return true;
  if (IsCommon(which)) return !spec.advanced && !spec.set_by_launcher;
  return Lower(spec.group).find(Lower(which)) != std::string::npos;
}

std::string ComponentNames(Components components) {
  constexpr std::pair<Components, std::string_view> kNames[] = {
      {kLauncher, "launcher"}, {kRouter, "router"}, {kShard, "shard"}, {kSimshard, "simshard"}};
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((components & bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

std::string Cell(std::string_view text) {
  std::string cell;
  for (char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string MarkdownRow(const OptionSpec& spec) {
  std::string names = "`--" + std::string(spec.name) + "`";
  if (spec.short_name != 0) names += std::string(", `-") + spec.short_name + "`";
  for (std::string_view alias : Pieces(spec.aliases)) {
    names += ", `--" + std::string(alias) + "`";
  }
  std::string fallback = spec.default_text.empty()
                             ? std::string(spec.required != 0 ? "required" : "unset")
                             : "`" + std::string(spec.default_text) + "`";
  return absl::StrCat("| ", names, " | ", fallback, " | ", Cell(DescribeAccepted(spec)), " | ",
                      ComponentNames(spec.components), " | ", Cell(Meaning(spec)), " |\n");
}

constexpr std::string_view kMarkdownHead = R"(# Options

<!-- Generated from common/options/rows.
     After a change: PENSTOCK_UPDATE_DOCS=1 build/tests/common_options_test -->

Every option `--some-name` can be given in three ways. The first in this list that sets it counts:

1. on the command line: `--some-name value` or `--some-name=value`; switches: `--name`,
   `--name=false`, `--no-name`;
2. in the environment: `PENSTOCK_SOME_NAME=value`. Names without the prefix do not count, except
   those of text-generation-inference under its names (docs/migrate-from-tgi.md);
3. in a YAML file that the launcher reads with `--config FILE`: `some_name: value`
   (or `some-name: value`).

An option given under two of its names is an error. `--print-config` prints each value and where it
came from. The launcher passes every value to the processes that it starts. Sizes are bytes or have
a unit: `64KiB`, `16MiB`, `8GiB` (powers of 1024; `K`, `M`, `G` mean the same) or `KB`, `MB`, `GB`
(powers of 1000). Times are seconds or have a unit:
`90s`, `250ms`, `10us`, `5m`, `1h`.
)";

}  // namespace

std::string HelpText(const ProgramOptions& program, std::string_view which) {
  std::string text = absl::StrCat("Usage: ", std::string(program.name), " [options]\n",
                                  Wrap(program.summary, 0), "\n");
  std::string_view group;
  bool any = false;
  for (const OptionSpec* spec : program.options) {
    if (!Shown(program, *spec, which)) continue;
    any = true;
    if (spec->group != group || (group.empty() && text.find("\n\n") == text.npos)) {
      group = spec->group;
      text += "\n" + std::string(group.empty() ? "Options" : group) + ":\n";
    }
    text += HelpEntry(program, *spec);
  }
  if (!any) {
    text += absl::StrCat("\nNo group of options is called \"", std::string(which),
                         "\". The groups are:\n");
    for (const OptionSpec* spec : program.options) {
      if (spec->group != group) text += "  " + std::string(group = spec->group) + "\n";
    }
  }
  if (!ShowsAll(program, which)) text += "\n--help-all shows every option.\n";
  return text;
}

std::string MarkdownPage() {
  std::string page(kMarkdownHead);
  std::string_view group;
  for (const OptionSpec& spec : Table()) {
    if (spec.group != group) {
      group = spec.group;
      page += "\n## " + std::string(group) +
              "\n\n| Option | Default | Accepts | Programs | Meaning |\n|---|---|---|---|---|\n";
    }
    page += MarkdownRow(spec);
  }
  return page;
}

}  // namespace penstock::options
