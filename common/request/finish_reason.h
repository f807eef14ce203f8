// Why a request's output ended.
#pragma once

#include <cstdint>

namespace penstock {

enum class FinishReason : std::uint8_t { kEos, kLength, kStopToken, kStopString, kCancelled };

}  // namespace penstock
