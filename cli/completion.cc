#include "cli/completion.h"

#include "cli/commands.h"

namespace penstock::cli {
namespace {

using options::OptionSpec;

std::string OptionWords(const Command& command) {
  std::string words;
  if (command.options == nullptr) return words;
  const options::ProgramOptions program = command.options();
  for (const OptionSpec* spec : program.options) {
    if (options::DoesNothing(*spec)) continue;
    if (!words.empty()) words += " ";
    words += "--" + std::string(spec->name);
  }
  for (const OptionSpec& spec : ExtraOptions(command.name)) {
    words += (words.empty() ? "--" : " --") + std::string(spec.name);
  }
  return words;
}

std::string CommandWords() {
  std::string words;
  for (const Command& command : Commands()) {
    words += (words.empty() ? "" : " ") + std::string(command.name);
  }
  return words;
}

// A case of the shell's `case "$command" in`, for commands with words.
std::string Cases() {
  std::string text;
  for (const Command& command : Commands()) {
    std::string words = OptionWords(command);
    if (command.name == "completion") words = "bash zsh fish";
    if (command.name == "help") words = CommandWords();
    if (words.empty()) continue;
    text += "    " + std::string(command.name) + ") words=\"" + words + "\" ;;\n";
  }
  return text;
}

std::string BashScript() {
  return "# bash completion of penstock\n"
         "_penstock() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} words=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         CommandWords() +
         " --help --version\" -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         Cases() +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _penstock penstock\n";
}

std::string ZshScript() {
  return "#compdef penstock\n"
         "_penstock() {\n"
         "  local words=\n"
         "  if (( CURRENT == 2 )); then\n"
         "    compadd -- " +
         CommandWords() +
         " --help --version\n"
         "    return\n"
         "  fi\n"
         "  case ${(Q)${(z)BUFFER}[2]} in\n" +
         Cases() +
         "  esac\n"
         "  compadd -- ${=words}\n"
         "  _files\n"
         "}\n"
         "compdef _penstock penstock\n";
}

// Within single quotes of fish.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string FishOption(const std::string& command, const OptionSpec& spec) {
  return "complete -c penstock -n '__fish_seen_subcommand_from " + command + "' -l " +
         std::string(spec.name) + (spec.flag_text.empty() ? " -r" : "") + " -d " +
         Quoted(spec.help) + "\n";
}

std::string FishScript() {
  std::string text = "# fish completion of penstock\n";
  for (const Command& command : Commands()) {
    const std::string name(command.name);
    text += "complete -c penstock -n __fish_use_subcommand -f -a " + name + " -d " +
            Quoted(command.summary) + "\n";
    if (command.options == nullptr) continue;
    const options::ProgramOptions program = command.options();
    for (const OptionSpec* spec : program.options) {
      if (!options::DoesNothing(*spec)) text += FishOption(name, *spec);
    }
    for (const OptionSpec& spec : ExtraOptions(name)) text += FishOption(name, spec);
  }
  return text +
         "complete -c penstock -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
}

}  // namespace

std::string CompletionScript(std::string_view shell) {
  if (shell == "bash") return BashScript();
  if (shell == "zsh") return ZshScript();
  return shell == "fish" ? FishScript() : "";
}

}  // namespace penstock::cli
