#include "cli/doctor/doctor.h"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "cli/demo_model.h"
#include "cli/doctor/address_checks.h"
#include "cli/doctor/folder_checks.h"
#include "cli/doctor/machine_checks.h"
#include "cli/doctor/model_checks.h"
#include "cli/doctor/program_checks.h"
#include "cli/doctor/server_checks.h"
#include "cli/model_folder.h"
#include "common/exit_codes.h"
#include "common/status.h"
#include "launcher/hub/hub_settings.h"
#include "launcher/shard_output.h"

namespace penstock::cli {
namespace {

void Append(Findings& all, Findings more) {
  for (Finding& finding : more) all.push_back(std::move(finding));
}

// Command line, environment and --config. A missing model is no problem: doctor need not start one.
Findings CheckOptions(const Words& words, options::Values& values) {
  absl::Status status = ReadLauncherWords(words, values);
  if (!values.HasValue("model-id")) {
    Words all = words;
    all.emplace_back("--model-id=.");
    options::Values unused(values.program());
    status = ReadLauncherWords(all, unused);
  }
  if (status.ok()) return {Good("options, environment and --config are valid")};
  Findings findings;
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    findings.push_back(Bad(std::string(line), "`penstock serve --help-all` for the options"));
  }
  return findings;
}

Finding ModelNotHere(const std::string& model, const absl::Status& why) {
  const bool offline = hub::SettingsFromEnvironment(&::getenv).offline;
  if (absl::IsUnavailable(why) && !offline) {
    return Good(model +
                " is not complete in the cache; the start asks the hub for it, which was not "
                "checked. For a folder, write ./" +
                model);
  }
  return Bad(Message(why), "the path of a folder, or the name ORG/NAME of a model of the hub");
}

// The folder of the model, or empty.
std::string FindFolder(const options::Values& values, Findings& findings) {
  const std::string& model = values.GetString("model-id");
  if (model.empty()) return "";
  const auto folder = FindModelFolder(values, model);
  if (folder.ok()) return *folder;
  findings.push_back(ModelNotHere(model, folder.status()));
  return "";
}

// What the model needs, if it can be served. Each check needs what the one before it found.
std::optional<MemoryNeeds> CheckModel(const options::Values& values,
                                      const launcher::Machine& machine, Findings& findings) {
  Append(findings,
         CheckModelFiles(values.GetString("model-id"), values.GetString("tokenizer-config-path")));
  const bool whole =
      findings.back().ok() || findings.back().problem.find("template") != std::string::npos;
  if (!whole) return std::nullopt;
  const auto needs = AskMemoryNeeds(values, machine);
  findings.push_back(CheckModelRuns(needs));
  return findings.back().ok() ? std::make_optional(*needs) : std::nullopt;
}

Findings CheckStart(options::Values values, const launcher::Machine& machine) {
  Findings findings;
  const std::string folder = FindFolder(values, findings);
  Append(findings, CheckMachine(values.GetInt("num-shard"), folder));
  findings.push_back(CheckPrograms(machine));
  const Finding device = CheckDevice(values, machine);
  findings.push_back(device);
  const std::string& model = values.GetString("model-id");
  const HubUse hub = {.cache = OfflineSettings(values).cache,
                      .named = !model.empty() && !std::filesystem::is_directory(model),
                      .complete = !folder.empty()};
  std::optional<MemoryNeeds> needs;
  const Findings tls = CheckTls(values);
  if (!folder.empty() && device.ok() && values.Set("model-id", folder).ok()) {
    needs = CheckModel(values, machine, findings);
    // Wrong TLS files would be named twice.
    if (needs && std::ranges::all_of(tls, &Finding::ok)) {
      findings.push_back(CheckRouterStarts(values, machine));
    }
  }
  Append(findings, CheckFolders(values, hub, needs ? needs->weights : 0));
  findings.push_back(
      CheckPort(values.GetString("hostname"), static_cast<int>(values.GetInt("port"))));
  Append(findings, tls);
  Append(findings, CheckKeysFile(values));
  return findings;
}

}  // namespace

int Doctor(Words words) {
  const absl::Status model = TakeModel(words);
  options::Values values(LauncherAnd("doctor"));
  Findings findings = CheckOptions(words, values);
  if (!model.ok()) findings.push_back(Bad(Message(model), "installing the package again"));
  const std::string& url = values.GetString("url");
  if (url.empty()) {
    const auto machine = launcher::FindMachine();
    if (machine.ok()) Append(findings, CheckStart(values, *machine));
  } else {
    Append(findings, CheckServer(url, values.GetString("api-key"), values.GetString("ca-file")));
    findings.push_back(CheckProxy([](const char* name) { return std::getenv(name); }));
  }
  int problems = 0;
  for (const Finding& finding : findings) {
    std::puts(LineOf(finding).c_str());
    if (!finding.ok()) ++problems;
  }
  return problems == 0 ? kExitOk : kExitFailure;
}

}  // namespace penstock::cli
