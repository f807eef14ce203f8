// Outputs as bytes, and their digest. An input log has digests, so that a replay finds the first
// input with different outputs (guarantee G9). Every field counts. The same on every compiler.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/output.h"

namespace penstock::scheduler {

std::string EncodeOutputs(const Outputs& out);
// 64-bit FNV-1a of EncodeOutputs.
std::uint64_t DigestOf(const Outputs& out);

}  // namespace penstock::scheduler
