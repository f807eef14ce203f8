// The flag table of docs/migrate-from-tgi.md.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/options/table.h"
#include "common/options/tgi.h"

namespace penstock::options {
namespace {

// The option row of a flag, from the launcher or the router.
const OptionSpec* RowOf(std::string_view flag) {
  static const ProgramOptions& launcher = *new ProgramOptions(ProgramFor(kLauncher));
  static const ProgramOptions& router = *new ProgramOptions(ProgramFor(kRouter));
  const OptionSpec* spec = Find(launcher, flag);
  return spec != nullptr ? spec : Find(router, flag);
}

std::string HarmlessValues(std::string_view values) {
  std::string text;
  while (!values.empty()) {
    const std::string_view piece = values.substr(0, values.find('|'));
    values.remove_prefix(std::min(values.size(), piece.size() + 1));
    text += (text.empty() ? "`" : ", `") + std::string(piece) + "`";
  }
  return text;
}

std::string Verdict(const TgiFlag& flag, const OptionSpec* spec) {
  if (spec == nullptr) return "refused";
  std::string text;
  if (!spec->refusal.empty()) {
    text = absl::StrCat("refused: ", std::string(spec->refusal));
    if (!spec->harmless.empty()) text += "; accepted: " + HarmlessValues(spec->harmless);
  } else if (!spec->no_effect.empty()) {
    text = absl::StrCat("accepted: ", std::string(spec->no_effect));
  } else if (spec->name == flag.name) {
    text = "works";
    if (spec->group == "text-generation-inference") text += ": " + std::string(spec->help);
  } else {
    text = absl::StrCat("works, as `--", std::string(spec->name), "`");
  }
  if (text.back() != '.') text += '.';
  if (!flag.note.empty()) text += " " + std::string(flag.note);
  return text;
}

std::string Variable(const EnvironmentRow& row) {
  std::string verdict(row.note);
  if (!row.option.empty()) {
    verdict = absl::StrCat("`--", std::string(row.option), "`.", row.note.empty() ? "" : " ",
                           std::string(row.note));
  } else if (!row.silent) {
    verdict = "accepted, without effect: " + verdict;
  }
  return absl::StrCat("| `", std::string(row.name), "` | ", verdict, " |\n");
}

}  // namespace

std::string TgiMarkdownTable() {
  std::string page = "| Flag | Here |\n|---|---|\n";
  for (const TgiFlag& flag : TgiFlags()) {
    page += absl::StrCat("| `--", std::string(flag.name), "` | ", Verdict(flag, RowOf(flag.name)),
                         " |\n");
  }
  page += "\nVariables without a flag:\n\n| Variable | Here |\n|---|---|\n";
  for (const EnvironmentRow& row : TgiOtherVariables()) page += Variable(row);
  return page;
}

}  // namespace penstock::options
