// Another instruction set for a while. Every new backend reads the variable.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "shard/backend/cpu/isa.h"

namespace penstock::shard {

// Sets PENSTOCK_ISA until the scope ends; then it is what it was, so that a whole run of the tests
// may ask for an instruction set.
class IsaSwitch {
 public:
  explicit IsaSwitch(const std::string& isa) {
    if (const char* before = std::getenv(kName)) before_ = before;
    setenv(kName, isa.c_str(), 1);
  }
  ~IsaSwitch() {
    if (before_.has_value()) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  IsaSwitch(const IsaSwitch&) = delete;
  IsaSwitch& operator=(const IsaSwitch&) = delete;

 private:
  static constexpr const char* kName = "PENSTOCK_ISA";
  std::optional<std::string> before_;
};

inline constexpr const char* kIsaNames[] = {"avx2", "avx512", "avx512-bf16"};

// Those that this processor has.
inline std::vector<std::string> Isas() {
  std::vector<std::string> isas;
  for (const char* isa : kIsaNames) {
    const IsaSwitch use(isa);
    if (cpu::ChooseIsa().ok()) isas.emplace_back(isa);
  }
  return isas;
}

}  // namespace penstock::shard
