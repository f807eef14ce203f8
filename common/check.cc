#include "common/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace penstock {
namespace {

thread_local int throwing = 0;

}  // namespace

void FailCheck(const char* file, int line, const char* invariant, const char* condition) {
  if (throwing > 0) throw BrokenInvariant(std::string(invariant) + " (" + condition + ")");
  std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", file, line, invariant, condition);
  std::abort();
}

ThrowBrokenInvariants::ThrowBrokenInvariants() { ++throwing; }
ThrowBrokenInvariants::~ThrowBrokenInvariants() { --throwing; }

}  // namespace penstock
