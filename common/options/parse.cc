#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/options/other_variables.h"
#include "common/options/values.h"

namespace penstock::options {
namespace {

// One setting found on the command line, before its text is checked.
struct Setting {
  const OptionSpec* spec = nullptr;
  std::string text;
  std::string written;  // as the user wrote it, for messages: "--port 70000", "PENSTOCK_PORT=70000"
  std::string where;
  std::string name = {};  // the long name on the command line, with hyphens; empty for others
};

class Parser {
 public:
  Parser(const Sources& sources, Values& values)
      : program_(values.program()), sources_(sources), values_(values) {}

  absl::Status Run();

 private:
  bool AsksOnly() const;
  void ReadArguments();
  void ReadArgument(std::size_t& index);
  void Stray(std::size_t index);
  void ReadLong(std::string_view body, std::size_t& index);
  void ReadShort(std::string_view argument, std::size_t& index);
  void TakeValue(Setting setting, std::size_t& index);
  void AddCommandLine(Setting setting);
  void ApplyProfile();
  void ApplyConfigFile();
  void ApplyConfigEntry(const ConfigEntry& entry);
  void ApplyProfileEnvironment();
  void ApplyProfileVariable(const EnvironmentRow& row, const std::string& text);
  std::string VariableOf(const OptionSpec& spec);
  void ApplyEnvironment();
  void CheckVariables();
  void ApplyCommandLine();
  void Apply(const Setting& setting, Source source);
  void CheckOffered(const Setting& setting);
  void CheckRequired();
  void ApplyConfig(const absl::StatusOr<std::vector<ConfigEntry>>& entries);
  std::string EarlyText(std::string_view name) const;
  void Unknown(std::string_view written, std::string_view name, std::string_view prefix);

  const ProgramOptions& program_;
  const Sources& sources_;
  Values& values_;
  std::vector<Setting> command_line_;
  std::vector<std::string> errors_;
  bool has_stray_ = false;
};

// Which of its long names: the letter and --no-x are the option's own name.
std::string LongName(const OptionSpec& spec, std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name == spec.name ? "" : name;
}

// The value as messages show it.
std::string Written(const OptionSpec& spec, std::string_view name, std::string_view text) {
  return absl::StrCat(std::string(name), "=", spec.secret ? "***" : std::string(text));
}

absl::Status Parser::Run() {
  ReadArguments();
  ApplyProfile();
  ApplyConfigFile();
  ApplyProfileEnvironment();
  ApplyEnvironment();
  CheckVariables();
  ApplyCommandLine();
  if (AsksOnly()) return absl::OkStatus();
  // After another error a value may be absent because of that error. The launcher's --print-config
  // shows what is missing.
  const bool shows = program_.component == kLauncher && values_.GetBool("print-config");
  if (errors_.empty() && !shows) CheckRequired();
  if (errors_.empty()) errors_ = CheckTogether(values_);
  if (errors_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
}

// Whether the program is to print something and nothing else, so that other errors do not count.
bool Parser::AsksOnly() const {
  if (values_.HasValue("help") || values_.GetBool("help-all")) return true;
  if (values_.GetBool("version")) return true;
  const bool has_env = Find(program_, "env") != nullptr;
  return has_env && values_.GetBool("env") && !values_.HasValue("model-id") && errors_.empty();
}

// What to give for a required option.
std::string WhatToGive(const ProgramOptions& program, const OptionSpec& spec) {
  if (spec.type != Type::kModel) return "it must be " + DescribeAccepted(spec);
  if (program.component != kLauncher) return "it must be the folder of a model";
  return "type `penstock serve FOLDER` for a folder with config.json, tokenizer.json and "
         ".safetensors files, `penstock serve ORG/NAME` for a model of the Hugging Face hub, or "
         "`penstock serve --demo` for the demo model";
}

void Parser::ReadArguments() {
  for (std::size_t index = 0; index < sources_.arguments.size(); ++index) ReadArgument(index);
}

void Parser::ReadArgument(std::size_t& index) {
  const std::string& argument = sources_.arguments[index];
  if (argument.starts_with("--") && argument.size() > 2) {
    ReadLong(std::string_view(argument).substr(2), index);
  } else if (argument.starts_with('-') && argument.size() > 1) {
    ReadShort(argument, index);
  } else {
    Stray(index);
  }
}

// An argument without a name. Only the first one gives an error.
void Parser::Stray(std::size_t index) {
  if (std::exchange(has_stray_, true)) return;
  const std::string& argument = sources_.arguments[index];
  std::string line = "\"" + argument + "\": belongs to no option; ";
  const std::string before = index == 0 ? "" : sources_.arguments[index - 1];
  const bool named = before.starts_with("--");
  const OptionSpec* const last = named ? Find(program_, before.substr(2)) : nullptr;
  if (last != nullptr && last->type == Type::kBool) {
    line += "write " + before + "=" + argument;
  } else if (Find(program_, "model-id") != nullptr) {
    line += "did you mean --model-id " + argument + "?";
  } else {
    line += "arguments without a name are not taken";
  }
  errors_.push_back(std::move(line));
}

void Parser::ReadLong(std::string_view body, std::size_t& index) {
  const std::size_t equals = body.find('=');
  const std::string name(body.substr(0, equals));
  Setting setting;
  setting.spec = Find(program_, name);
  if (setting.spec == nullptr && name.starts_with("no-") && equals == body.npos) {
    const OptionSpec* positive = Find(program_, name.substr(3));
    if (positive != nullptr && positive->type == Type::kBool) {
      return AddCommandLine({positive, "false", "--" + name, ""});
    }
  }
  if (setting.spec == nullptr) {
    // The next argument is most likely the option's value. It gets no error line of its own.
    const bool has_next = index + 1 < sources_.arguments.size();
    if (equals == body.npos && has_next && !sources_.arguments[index + 1].starts_with('-')) ++index;
    return Unknown("--" + name, name, "--");
  }
  setting.written = "--" + name;
  setting.name = LongName(*setting.spec, name);
  if (equals == body.npos) return TakeValue(std::move(setting), index);
  setting.text = std::string(body.substr(equals + 1));
  setting.written = Written(*setting.spec, setting.written, setting.text);
  AddCommandLine(std::move(setting));
}

// -p 3000 or -p3000.
void Parser::ReadShort(std::string_view argument, std::size_t& index) {
  Setting setting;
  setting.spec = FindShort(program_, argument[1]);
  if (setting.spec == nullptr) return Unknown(argument, argument.substr(1), "--");
  setting.written = std::string(argument.substr(0, 2));
  if (argument.size() == 2) return TakeValue(std::move(setting), index);
  setting.text = std::string(argument.substr(2));
  setting.written = std::string(argument);
  AddCommandLine(std::move(setting));
}

// The value of an option that was written without '='.
void Parser::TakeValue(Setting setting, std::size_t& index) {
  if (!setting.spec->flag_text.empty()) {
    setting.text = std::string(setting.spec->flag_text);
    return AddCommandLine(std::move(setting));
  }
  const bool missing =
      index + 1 >= sources_.arguments.size() || sources_.arguments[index + 1].starts_with("--");
  if (missing) {
    errors_.push_back(absl::StrCat(setting.written, ": a value is missing; ",
                                   WhatToGive(program_, *setting.spec)));
    return;
  }
  setting.text = sources_.arguments[++index];
  const std::string shown = setting.text.empty() ? "\"\"" : setting.text;
  setting.written += setting.spec->secret ? " ***" : " " + shown;
  AddCommandLine(std::move(setting));
}

// As TGI's programs name it: "--port <PORT>".
std::string WithPlaceholder(const Setting& setting) {
  const std::string name = setting.name.empty() ? std::string(setting.spec->name) : setting.name;
  if (!setting.spec->flag_text.empty()) return "--" + name;
  std::string placeholder = absl::AsciiStrToUpper(name);
  std::replace(placeholder.begin(), placeholder.end(), '-', '_');
  return absl::StrCat("--", name, " <", placeholder, ">");
}

// A repeated list option adds to the list. Of any other repeated option the last value counts, so
// that a script can append overrides. Programs under TGI's names refuse this, as TGI does. An
// option under two names is an error, since it is most likely a mistake.
void Parser::AddCommandLine(Setting setting) {
  for (const Setting& earlier : command_line_) {
    if (earlier.spec != setting.spec) continue;
    if (earlier.name != setting.name) {
      errors_.push_back(absl::StrCat(setting.written, ": is ",
                                     earlier.written.substr(0, earlier.written.find_first_of(" =")),
                                     " by another name; give one of them"));
      return;
    }
    if (program_.profile != nullptr && setting.spec->type != Type::kList) {
      errors_.push_back(absl::StrCat("the argument '", WithPlaceholder(setting),
                                     "' cannot be used multiple times"));
      return;
    }
  }
  if (setting.spec->type == Type::kList) {
    for (Setting& earlier : command_line_) {
      if (earlier.spec != setting.spec) continue;
      earlier.text += "," + setting.text;
      return;
    }
  }
  command_line_.push_back(std::move(setting));
}

// The value of an option that says where further settings are.
std::string Parser::EarlyText(std::string_view name) const {
  const OptionSpec* spec = Find(program_, name);
  if (spec == nullptr) return "";
  std::string found;
  if (sources_.environment) {
    const char* text = sources_.environment(EnvironmentName(*spec));
    if (text != nullptr) found = text;
  }
  for (const Setting& setting : command_line_) {
    if (setting.spec == spec) found = setting.text;
  }
  return found;
}

void Parser::ApplyProfile() {
  if (program_.profile == nullptr) return;
  for (const Preset& preset : program_.profile->presets) {
    Apply({Find(program_, preset.option), std::string(preset.text), "", ""}, Source::kProfile);
  }
}

void Parser::ApplyConfigFile() {
  const std::string path = EarlyText("config");
  if (!path.empty() && sources_.read_config) ApplyConfig(sources_.read_config(path));
  if (!sources_.read_more) return;
  ApplyConfig(sources_.read_more([this](std::string_view name) { return EarlyText(name); }));
}

void Parser::ApplyConfig(const absl::StatusOr<std::vector<ConfigEntry>>& entries) {
  if (!entries.ok()) {
    errors_.push_back(std::string(entries.status().message()));
    return;
  }
  std::map<const OptionSpec*, std::string> keys;
  for (const ConfigEntry& entry : *entries) {
    const OptionSpec* spec = Find(program_, entry.key);
    const auto [before, is_first] = keys.try_emplace(spec, entry.key);
    if (spec != nullptr && !is_first && before->second != entry.key) {
      errors_.push_back(absl::StrCat(entry.where, ": ", entry.key, ": is ", before->second,
                                     " by another name; give one of them"));
      continue;
    }
    ApplyConfigEntry(entry);
  }
}

void Parser::ApplyConfigEntry(const ConfigEntry& entry) {
  const OptionSpec* spec = Find(program_, entry.key);
  const std::string written = absl::StrCat(entry.where, ": ", entry.key);
  if (spec == nullptr) return Unknown(written, entry.key, "");
  if (spec->group == "Program") {
    errors_.push_back(written + ": belongs on the command line, not into a file");
    return;
  }
  if (entry.values.size() != 1 && spec->type != Type::kList) {
    errors_.push_back(absl::StrCat(written, ": must be one value: ", DescribeAccepted(*spec),
                                   ". Given: ", absl::StrJoin(entry.values, ", ")));
    return;
  }
  const std::string text = absl::StrJoin(entry.values, ",");
  Apply({spec, text, absl::StrCat(written, ": ", text), entry.where}, entry.source);
}

// Another program's variables. Two names of one option must not both be set.
void Parser::ApplyProfileEnvironment() {
  if (program_.profile == nullptr || !sources_.environment) return;
  std::map<const OptionSpec*, std::string_view> seen;
  for (const EnvironmentRow& row : program_.profile->environment) {
    const char* text = sources_.environment(std::string(row.name));
    if (text == nullptr || *text == '\0') continue;
    const OptionSpec* spec = row.option.empty() ? nullptr : Find(program_, row.option);
    const auto [before, is_first] = seen.try_emplace(spec, row.name);
    if (spec != nullptr && !is_first) {
      errors_.push_back(absl::StrCat(std::string(row.name), ": is ", std::string(before->second),
                                     " by another name; set one of them"));
      continue;
    }
    ApplyProfileVariable(row, text);
  }
}

void Parser::ApplyProfileVariable(const EnvironmentRow& row, const std::string& text) {
  const std::string name(row.name);
  const OptionSpec* spec = row.option.empty() ? nullptr : Find(program_, row.option);
  if (spec == nullptr) {
    if (row.silent) return;
    const std::string line = absl::StrCat(name, "=", text);
    if (!row.option.empty()) {
      errors_.push_back(line + ": is not offered");
    } else {
      values_.AddWarning(line + ": has no effect. " + std::string(row.note));
    }
    return;
  }
  if (spec->type == Type::kInt && IsKubernetesServiceLink(text)) {
    values_.AddWarning(absl::StrCat(name, "=", text, ": ignored, it is a Kubernetes service link"));
    return;
  }
  std::optional<std::string> meant = text;
  if (row.translate != nullptr) meant = row.translate(text);
  const std::string written = Written(*spec, name, text);
  if (!meant.has_value()) {
    values_.AddWarning(written + ": ignored, it is no value of --" + std::string(spec->name));
    return;
  }
  Apply({spec, *meant, written, name}, Source::kEnvironment);
}

// The variable that sets the option; empty if none does. Two names of one option are an error.
std::string Parser::VariableOf(const OptionSpec& spec) {
  std::string found;
  for (const std::string& name : EnvironmentNames(spec)) {
    const char* text = sources_.environment(name);
    if (text == nullptr || *text == '\0') continue;
    if (found.empty()) {
      found = name;
    } else {
      errors_.push_back(absl::StrCat(name, ": is ", found, " by another name; set one of them"));
    }
  }
  return found;
}

void Parser::ApplyEnvironment() {
  if (!sources_.environment) return;
  for (const OptionSpec* spec : program_.options) {
    if (spec->group == "Program" && spec->name != "config") continue;
    const std::string name = VariableOf(*spec);
    if (name.empty()) continue;
    const char* text = sources_.environment(name);
    if (spec->type == Type::kInt && IsKubernetesServiceLink(text)) {
      values_.AddWarning(
          absl::StrCat(name, "=", text, ": ignored, it is a Kubernetes service link"));
      continue;
    }
    Apply({spec, text, Written(*spec, name, text), name}, Source::kEnvironment);
  }
}

// Refuses a PENSTOCK_* variable that no program reads, since it is most likely misspelt. A variable
// of another program may be meant for a child.
void Parser::CheckVariables() {
  for (const std::string& name : sources_.variables) {
    if (!name.starts_with(kVariablePrefix) || IsOtherVariable(name)) continue;
    const char* text = sources_.environment(name);
    if (text == nullptr || *text == '\0') continue;
    const auto reads = [&](const OptionSpec& spec) {
      return std::ranges::count(EnvironmentNames(spec), name) > 0;
    };
    if (std::ranges::any_of(Table(), reads)) continue;
    if (std::ranges::any_of(program_.options, [&](const auto* spec) { return reads(*spec); })) {
      continue;
    }
    if (IsKubernetesServiceName(name) || IsKubernetesServiceLink(text)) continue;
    const std::string_view option = std::string_view(name).substr(kVariablePrefix.size());
    const std::string near(Nearest(program_, absl::AsciiStrToLower(std::string(option))));
    const OptionSpec* spec = near.empty() ? nullptr : Find(program_, near);
    errors_.push_back(name + ": unknown variable" +
                      (spec == nullptr ? "" : "; did you mean " + EnvironmentName(*spec) + "?"));
  }
}

void Parser::ApplyCommandLine() {
  for (const Setting& setting : command_line_) Apply(setting, Source::kCommandLine);
}

void Parser::Apply(const Setting& setting, Source source) {
  absl::Status status = values_.Set(setting.spec->name, setting.text, source, setting.where);
  if (status.ok()) return CheckOffered(setting);
  errors_.push_back(absl::StrCat(setting.written, ": ", status.message()));
}

// What is refused, and what changes nothing, is said by the row.
void Parser::CheckOffered(const Setting& setting) {
  const OptionSpec& spec = *setting.spec;
  if (std::ranges::count(Pieces(spec.harmless), values_.TextOf(spec.name)) > 0) return;
  if (!spec.refusal.empty()) {
    errors_.push_back(
        absl::StrCat(setting.written, ": is not offered; ", std::string(spec.refusal)));
  } else if (!spec.no_effect.empty()) {
    values_.AddWarning(
        absl::StrCat(setting.written, ": has no effect: ", std::string(spec.no_effect)));
  }
}

// The option's name in the profile, for example --tokenizer-name for text-generation-router.
std::string_view NameIn(const ProgramOptions& program, const OptionSpec& spec) {
  if (program.profile == nullptr) return spec.name;
  std::string_view other;
  for (const EnvironmentRow& row : program.profile->environment) {
    if (row.option == spec.name) return spec.name;
    if (!row.option.empty() && Find(program, row.option) == &spec) other = row.option;
  }
  return other.empty() ? spec.name : other;
}

void Parser::CheckRequired() {
  for (const OptionSpec* spec : program_.options) {
    const bool required = (spec->required & program_.component) != 0;
    if (!required || values_.HasValue(spec->name)) continue;
    errors_.push_back(absl::StrCat("--", std::string(NameIn(program_, *spec)), ": is required; ",
                                   WhatToGive(program_, *spec)));
  }
}

// "prefix-caching" for "no-prefix-caching"; empty if there is no such switch.
std::string SwitchedOff(const ProgramOptions& program, std::string_view name) {
  if (!name.starts_with("no-") && !name.starts_with("no_")) return "";
  const OptionSpec* spec = Find(program, name.substr(3));
  return spec != nullptr && spec->type == Type::kBool ? std::string(spec->name) : "";
}

// The nearest name: "no-console" for "no-consol".
std::string NearestName(const ProgramOptions& program, std::string_view name) {
  if (name.starts_with("no-")) {
    const std::string_view switched = Nearest(program, name.substr(3));
    const OptionSpec* spec = switched.empty() ? nullptr : Find(program, switched);
    if (spec != nullptr && spec->type == Type::kBool) return "no-" + std::string(switched);
  }
  return std::string(Nearest(program, name));
}

void Parser::Unknown(std::string_view written, std::string_view name, std::string_view prefix) {
  // --no-x is a switch of the command line alone, and has no value.
  const std::string positive = SwitchedOff(program_, name);
  std::string near = positive.empty() ? NearestName(program_, name) : positive;
  if (prefix.empty()) std::replace(near.begin(), near.end(), '-', '_');
  std::string line = std::string(written) + ": unknown option";
  if (!positive.empty()) {
    line += "; " + std::string(prefix) + near + (prefix.empty() ? ": false" : "=false") +
            " turns it off";
  } else {
    line += near.empty() ? "; " : "; did you mean " + std::string(prefix) + near + "? ";
    if (prefix.empty()) {
      line += "`penstock serve --help-all` lists the keys";
    } else {
      line += HidesOptions(program_) ? "--help-all" : "--help";
      line += " lists the options";
    }
  }
  errors_.push_back(std::move(line));
}

}  // namespace

absl::Status ParseInto(const Sources& sources, Values& values) {
  return Parser(sources, values).Run();
}

absl::StatusOr<Values> Parse(const ProgramOptions& program, const Sources& sources) {
  Values values(program);
  const absl::Status status = ParseInto(sources, values);
  if (!status.ok()) return status;
  return values;
}

}  // namespace penstock::options
