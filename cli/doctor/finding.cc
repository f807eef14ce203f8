#include "cli/doctor/finding.h"

namespace penstock::cli {

std::string LineOf(const Finding& finding) {
  if (finding.ok()) return (finding.note ? "note: " : "ok: ") + finding.what;
  return "problem: " + finding.problem + (finding.advice.empty() ? "" : "; try " + finding.advice);
}

}  // namespace penstock::cli
