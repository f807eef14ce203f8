#include <string>

#include "common/options/table.h"
#include "tools/plan/plan_command.h"

int main(int argc, char** argv) {
  const std::string program(penstock::options::ShownName(argc > 0 ? argv[0] : "", "penstock-plan"));
  return penstock::plan::PlanCommand(program.c_str(), argc, argv);
}
