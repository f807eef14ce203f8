#include "cli/man.h"

#include <string_view>

#include "cli/commands.h"
#include "common/version.h"

namespace penstock::cli {
namespace {

using options::OptionSpec;

// Text without meaning for roff: hyphens stay hyphens, and no line begins with a command.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string Section(std::string_view title) { return ".SH \"" + std::string(title) + "\"\n"; }

std::string Entry(const std::string& term, std::string_view text) {
  return ".TP\n\\fB" + Roff(term) + "\\fR\n" + Roff(text) + "\n";
}

std::string OptionRows(const options::ProgramOptions& program) {
  std::string text;
  std::string_view group;
  for (const OptionSpec* spec : program.options) {
    if (!spec->refusal.empty() || !spec->no_effect.empty()) continue;
    if (spec->group != group) {
      group = spec->group;
      text += ".SS \"" + Roff(group) + "\"\n";
    }
    std::string help(spec->help);
    if (!spec->default_text.empty()) help += " [" + std::string(spec->default_text) + "]";
    text += Entry("--" + std::string(spec->name), help);
  }
  return text;
}

}  // namespace

std::string ManPage() {
  std::string page = ".TH PENSTOCK 1 \"\" \"penstock " + std::string(Version()) + "\"\n";
  page += Section("NAME") + "penstock \\- serve Hugging Face language models over HTTP\n";
  page += Section("SYNOPSIS") + "\\fBpenstock\\fR \\fICOMMAND\\fR [options]\n";
  page += Section("COMMANDS");
  for (const Command& command : Commands()) {
    page +=
        Entry(std::string(command.name) + " " + std::string(command.arguments), command.summary);
  }
  for (const char* name : {"chat", "models"}) {
    page += Section("OPTIONS OF " + std::string(name)) + OptionRows(FindCommand(name)->options());
  }
  page += Section("OPTIONS OF serve") +
          Roff(
              "fit and doctor take them too. Each is also a variable PENSTOCK_NAME and a key of "
              "the file that --config names.") +
          "\n" + OptionRows(FindCommand("serve")->options());
  page += Section("EXIT STATUS") + Entry("0", "Success; for doctor: no problem was found.") +
          Entry("1", "An error; for doctor: a problem was found.") +
          Entry("2", "An option is wrong.") + Entry("3", "The model cannot be used.") +
          Entry("4", "The model does not fit into the memory.");
  return page + Section("SEE ALSO") + Roff("docs/command.md and docs/operations.md of Penstock.") +
         "\n";
}

}  // namespace penstock::cli
