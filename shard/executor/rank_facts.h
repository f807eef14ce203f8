// What a rank tells the router of its model's caches and vectors.
#pragma once

#include <string>

#include "penstock/v1/shard.pb.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/model/model.h"
#include "shard/model/model_spec.h"
#include "shard/model/pooling.h"
#include "shard/model/program.h"

namespace penstock::shard {

void AddCacheFacts(const Program& program, const PagedLayout& layout, v1::DescribeResponse& facts);

// For a model that gives vectors or classes of texts.
void AddPoolingFacts(const ModelSpec& spec, const Pooling& pooling, v1::DescribeResponse& facts);

// One line for the log, of a model whose checkpoint is quantised: "fp8: 28 matrices of the model
// are expanded while loading: …".
std::string DescribeQuantized(const Model& model);

}  // namespace penstock::shard
