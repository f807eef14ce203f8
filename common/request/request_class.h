// Where a request came from, as far as scheduling cares: optimistic admission learns output lengths
// per class.
#pragma once

#include <cstdint>

namespace penstock {

enum class RequestClass : std::uint8_t { kOther, kTgi, kOpenAiChat, kOpenAiCompletion, kDjl };

}  // namespace penstock
