// What a check of `penstock doctor` found.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct Finding {
  std::string what;     // "port 3000 is free"
  std::string problem;  // empty: ok
  std::string advice;   // what to try
  bool note = false;    // it may be as wished or not

  bool ok() const { return problem.empty(); }
};

inline Finding Good(std::string what) { return {std::move(what), "", "", false}; }
inline Finding Bad(std::string problem, std::string advice) {
  return {"", std::move(problem), std::move(advice), false};
}

inline Finding Note(std::string what) { return {std::move(what), "", "", true}; }

using Findings = std::vector<Finding>;

// "ok: WHAT", "note: WHAT" or "problem: PROBLEM; try ADVICE".
std::string LineOf(const Finding& finding);

}  // namespace penstock::cli
