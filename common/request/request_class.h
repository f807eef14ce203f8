// The class of a request: the interface that it came from. Optimistic admission learns output
// lengths per class.
#pragma once

#include <cstdint>

namespace penstock {

enum class RequestClass : std::uint8_t { kOther, kTgi, kOpenAiChat, kOpenAiCompletion, kDjl };

}  // namespace penstock
