// The findings of a check. Each line begins with the guarantee that was broken.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace penstock::sim {

class Findings {
 public:
  // `guarantee` as in docs/scheduling-guarantees.md: "G1" … "G9"; "core" for the core's own
  // assertion, "model" for a difference from sim/model.
  void Add(const char* guarantee, const std::string& what) {
    lines_.push_back(std::string(guarantee) + ": " + what);
  }
  bool empty() const { return lines_.empty(); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

}  // namespace penstock::sim
