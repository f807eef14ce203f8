// What the Python child says of a model folder, as a Model without weights.
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/object.hpp>

#include "shard/model/model.h"

namespace penstock::shard::transformers {

// The reply to `describe`: model_type, vocabulary, max_position, eos_token_ids, bos_token_id,
// dtype, stored_dtype, layers, parameters, and caches: heads, and dimensions of a key and of a
// value, of each layer that keeps some. Internal, naming the field, if one is missing or out of its
// range.
absl::StatusOr<Model> ModelOf(const boost::json::object& description);

}  // namespace penstock::shard::transformers
