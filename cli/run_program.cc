#include "cli/run_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/exit_codes.h"
#include "launcher/machine.h"

namespace penstock::cli {

std::string ProgramPath(const std::string& program) {
  const auto folder = launcher::ProgramFolder();
  return folder.ok() ? *folder + "/" + program : program;
}

int RunProgram(const std::string& program, const std::string& shown,
               const std::vector<std::string>& arguments) {
  const std::string path = ProgramPath(program);
  std::vector<std::string> words = {shown};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  std::fprintf(stderr, "penstock: error: %s cannot be started: %s\n", path.c_str(),
               std::strerror(errno));
  return kExitFailure;
}

}  // namespace penstock::cli
