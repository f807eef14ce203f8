#include "cli/words.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/config_file.h"
#include "launcher/serving/serving_properties.h"

namespace penstock::cli {

std::optional<std::string> TakeFirst(Words& words) {
  if (words.empty() || words.front().starts_with('-')) return std::nullopt;
  std::string first = std::move(words.front());
  words.erase(words.begin());
  return first;
}

bool TakeSwitch(Words& words, std::string_view name) {
  return std::erase(words, "--" + std::string(name)) > 0;
}

bool AsksForHelp(const Words& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word == "-h" || word == "--help" || word.starts_with("--help=") || word == "--help-all";
  });
}

options::CommandLine ReadWords(const options::ProgramOptions& program, const Words& words) {
  const std::string name(program.name);
  std::vector<const char*> argv = {name.c_str()};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return options::ReadCommandLine(program, static_cast<int>(argv.size()), argv.data());
}

absl::Status ReadLauncherWords(const Words& words, options::Values& values) {
  launcher::ServingSource serving;
  options::Sources sources;
  sources.arguments = words;
  sources.environment = [](const std::string& name) { return std::getenv(name.c_str()); };
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    sources.variables.emplace_back(text.substr(0, text.find('=')));
  }
  sources.read_config = launcher::ReadConfigFile;
  sources.read_more = serving.Reader();
  return options::ParseInto(sources, values);
}

}  // namespace penstock::cli
