// Calls of libtorch that may fail.
#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <exception>
#include <string>

#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/device_work.h"

namespace penstock::shard {

// Runs `body`, which may call libtorch, and turns exceptions into statuses. Messages of libtorch
// have a stack trace after the first line. Inference mode and stream belong to the thread, so each
// call sets them.
template <class Body>
absl::Status Guarded(at::Device device, void* stream, Body body) {
  const c10::InferenceMode inference;
  try {
    UseStream(device, stream);
    return body();
  } catch (const std::exception& error) {
    std::string text = error.what();
    text.resize(std::min(text.find('\n'), text.size()));
    const bool memory = text.find("allocate memory") != std::string::npos ||
                        text.find("out of memory") != std::string::npos;
    return memory ? absl::ResourceExhaustedError(text) : absl::InternalError("libtorch: " + text);
  }
}

}  // namespace penstock::shard
