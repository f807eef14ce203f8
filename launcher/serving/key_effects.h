// Keys of serving.properties whose values are not simply those of one option.
#pragma once

#include <string>

#include "launcher/serving/serving_keys.h"

namespace penstock::launcher::effects {

KeyEffect ModelId(const std::string& value);
KeyEffect TensorParallel(const std::string& value);
KeyEffect DType(const std::string& value);
KeyEffect RollingBatch(const std::string& value);
KeyEffect DecodingStrategy(const std::string& value);
KeyEffect OutputFormatter(const std::string& value);
KeyEffect ChunkedPrefill(const std::string& value);
KeyEffect JobQueueSize(const std::string& value);
KeyEffect BatchSize(const std::string& value);
KeyEffect InferenceAddress(const std::string& value);

}  // namespace penstock::launcher::effects
