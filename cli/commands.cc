#include "cli/commands.h"

#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdio>

#include "cli/chat.h"
#include "cli/completion.h"
#include "cli/demo_model.h"
#include "cli/doctor/doctor.h"
#include "cli/fit.h"
#include "cli/man.h"
#include "cli/models.h"
#include "cli/run_program.h"
#include "common/edit_distance.h"
#include "common/exit_codes.h"
#include "common/status.h"
#include "common/version.h"

namespace penstock::cli {
namespace {

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kDemoRow("demo", Type::kBool, "false",
                              "Take the demo model that comes with Penstock.");
constexpr OptionSpec kServeRows[] = {kDemoRow};
constexpr OptionSpec kFitRows[] = {
    kDemoRow,
    OptionSpec("memory", options::Bytes(1), "", "Free memory of the machine. Unset: of this one."),
};
constexpr OptionSpec kDoctorRows[] = {
    kDemoRow,
    OptionSpec("url", Type::kString, "", "Check this running server, not a start."),
    OptionSpec("ca-file", Type::kPath, "",
               "PEM file with the certificates that the one of --url must come from. Unset: those "
               "that the system trusts."),
};

int Fail(const std::string& error) {
  std::fprintf(stderr, "penstock: error: %s\n", error.c_str());
  return kExitUsage;
}

int NoSuchCommand(const std::string& name) {
  const std::string nearest(NearestCommand(name));
  return Fail("\"" + name + "\": no such command" +
              (nearest.empty() ? "; `penstock help` lists them"
                               : "; did you mean `penstock " + nearest + "`?"));
}

options::ProgramOptions LauncherOptions() { return options::ProgramFor(options::kLauncher); }

int Serve(Words words) {
  const absl::Status model = TakeModel(words);
  if (!model.ok()) return Fail(Message(model));
  return RunProgram("penstock-launcher", "penstock serve", words);
}

int Bench(Words words) { return RunProgram("penstock-bench", "penstock bench", words); }

int Replay(Words words) {
  // `replay FILE` re-runs a log. The first word may also be a command of the tool, such as `run`.
  constexpr std::string_view kModes[] = {"run", "lengths", "trace", "search", "what-if"};
  const bool file = !words.empty() && !words.front().starts_with('-') &&
                    std::ranges::find(kModes, words.front()) == std::end(kModes);
  if (file) words.insert(words.begin(), "run");
  return RunProgram("penstock-replay", "penstock replay", words);
}

int RunPlan(Words words) { return RunProgram("penstock-plan", "penstock plan", words); }

int Help(Words words) {
  const Command* command = words.empty() ? nullptr : FindCommand(words.front());
  if (!words.empty() && command == nullptr) return NoSuchCommand(words.front());
  if (command != nullptr && command->name != "help") return command->run({"--help"});
  std::fputs(HelpText().c_str(), stdout);
  return kExitOk;
}

int RunModels(Words words) { return Models(words); }
int RunChat(Words words) { return Chat(words); }
int RunMan(Words words) {
  if (!words.empty()) return Fail("man " + words.front() + ": man takes no arguments");
  std::fputs(ManPage().c_str(), stdout);
  return kExitOk;
}

int RunCompletion(Words words) {
  const std::string shell = absl::StrJoin(words, " ");
  const std::string script = CompletionScript(shell);
  if (shell.empty()) return Fail("completion: a shell is missing; give bash, zsh or fish");
  if (script.empty()) return Fail("completion " + shell + ": must be bash, zsh or fish");
  std::fputs(script.c_str(), stdout);
  return kExitOk;
}

constexpr Command kCommands[] = {
    {"serve", "[MODEL] [--demo] [options]",
     "Starts a server for a model folder or a model of the Hugging Face hub.", Serve,
     LauncherOptions, true},
    {"chat", "[--url URL] [options]", "Talks to a server in this terminal.", RunChat, ChatOptions},
    {"bench", "--url URL [options]", "Loads a server and reports latencies and rates.", Bench},
    {"fit", "MODEL [--demo] [--memory BYTES] [options]",
     "Prints what a model needs of the memory, and how many requests fit.", Fit, LauncherOptions,
     true},
    {"doctor", "[MODEL] [--demo] [--url URL] [options]",
     "Names the cause of a start or a request that does not work.", Doctor, LauncherOptions, true},
    {"models", "[--cache DIR] [--json]", "Lists the models in the Hugging Face cache.", RunModels,
     ModelsOptions},
    {"replay", "FILE [options]", "Runs a recorded log again, without a model.", Replay, nullptr,
     true},
    {"plan", "--model MODEL --machines FILE [options]",
     "Finds the groups and settings that serve a load within an objective.", RunPlan},
    {"completion", "bash|zsh|fish", "Prints a completion script for a shell.", RunCompletion},
    {"man", "", "Prints the manual page in roff.", RunMan},
    {"help", "[COMMAND]", "Prints this list, or the options of a command.", Help},
};

}  // namespace

std::span<const Command> Commands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  const auto* found = std::ranges::find(kCommands, name, &Command::name);
  return found == std::end(kCommands) ? nullptr : found;
}

std::string_view NearestCommand(std::string_view name) {
  std::string_view best;
  std::size_t least = std::min<std::size_t>(3, name.size() / 2 + 1);
  for (const Command& command : kCommands) {
    const std::size_t distance = EditDistance(name, command.name);
    if (distance < least) {
      least = distance;
      best = command.name;
    }
  }
  return best;
}

std::span<const options::OptionSpec> ExtraOptions(std::string_view command) {
  if (command == "serve") return kServeRows;
  if (command == "fit") return kFitRows;
  if (command == "doctor") return kDoctorRows;
  return {};
}

options::ProgramOptions LauncherAnd(std::string_view command) {
  options::ProgramOptions program = LauncherOptions();
  for (const OptionSpec& spec : ExtraOptions(command)) program.options.push_back(&spec);
  return program;
}

std::string HelpText() {
  std::string text = "Usage: penstock COMMAND [options]\n\n";
  for (const Command& command : kCommands) {
    text += "  " + std::string(command.name) + std::string(12 - command.name.size(), ' ') +
            std::string(command.summary) + "\n";
  }
  return text +
         "\n"
         "penstock COMMAND --help prints the options of a command.\n"
         "penstock serve --demo starts a server; then penstock chat talks to it.\n";
}

int Run(Words words) {
  if (words.empty()) {
    std::fputs(HelpText().c_str(), stderr);
    return kExitUsage;
  }
  const std::string name = words.front();
  words.erase(words.begin());
  if (name == "--help" || name == "-h") return Help(std::move(words));
  if (name == "--version" || name == "-V") {
    std::printf("penstock %s\n", std::string(Version()).c_str());
    return kExitOk;
  }
  const Command* command = FindCommand(name);
  if (command == nullptr) return NoSuchCommand(name);
  // These have the launcher's options and more; the others print their help themselves.
  const bool own = command->options == LauncherOptions && name != "serve";
  if ((own || command->run == RunMan || command->run == RunCompletion) && AsksForHelp(words)) {
    std::printf("Usage: penstock %s %s\n%s\n", name.c_str(),
                std::string(command->arguments).c_str(), std::string(command->summary).c_str());
    for (const OptionSpec& spec : ExtraOptions(name)) {
      std::printf("\n  --%s  %s\n", std::string(spec.name).c_str(), std::string(spec.help).c_str());
    }
    if (own) std::puts("\nThe other options are those of `penstock serve --help-all`.");
    return kExitOk;
  }
  return command->run(std::move(words));
}

}  // namespace penstock::cli
