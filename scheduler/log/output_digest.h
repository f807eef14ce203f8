// Outputs as bytes, and their digest: what an input log keeps so that a replay can tell the first
// input that has another outcome (guarantee G9). Every field counts. The same on every compiler.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/output.h"

namespace penstock::scheduler {

std::string EncodeOutputs(const Outputs& out);
// 64-bit FNV-1a of EncodeOutputs.
std::uint64_t DigestOf(const Outputs& out);

}  // namespace penstock::scheduler
