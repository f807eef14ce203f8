// libFuzzer's side: PENSTOCK_FUZZ_TARGET names the target (tests/fuzz/run).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/log.h"
#include "tests/fuzz/target.h"

namespace {

const penstock::fuzz::Target* g_target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("PENSTOCK_FUZZ_TARGET");
  g_target = penstock::fuzz::FindTarget(name == nullptr ? "" : name);
  if (g_target == nullptr) {
    std::fputs("PENSTOCK_FUZZ_TARGET must be one of:", stderr);
    for (const auto& target : penstock::fuzz::Targets()) {
      std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
    }
    std::fputc('\n', stderr);
    std::exit(2);
  }
  penstock::log::Configure("fuzz", penstock::log::Level::kError, penstock::log::Format::kText);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  g_target->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
