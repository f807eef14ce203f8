// What penstock-plan prints.
#pragma once

#include <string>
#include <vector>

#include "tools/plan/plan_options.h"
#include "tools/plan/search.h"

namespace penstock::plan {

struct Report {
  const PlanOptions* options = nullptr;
  Found found;  // with at least one plan
  std::vector<std::string> left_out;
  std::vector<std::string> changes;  // what would change the choice, a sentence each
};

std::string ToText(const Report& report);
std::string ToJson(const Report& report);

// "90 % of requests with time to first token <= 400 ms".
std::string Describe(const Goal& goal);

}  // namespace penstock::plan
