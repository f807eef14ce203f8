// The made weights as a GGUF file too, so that llama.cpp can be measured on the same model. Format:
// github.com/ggml-org/ggml, docs/gguf.md (version 3). There is no tokenizer in it ("no_vocab").
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/dtype.h"
#include "tools/make-model/shape.h"

namespace penstock::make_model {

struct GgufModel {
  Shape shape;
  ModelKind kind;
  DType dtype = DType::kBFloat16;
  std::uint64_t seed = 0;
};

// The same values as MakeModel writes; matrices in `dtype`, vectors in float32, as llama.cpp's own
// converter stores them. Keeps one tensor in memory.
absl::Status WriteGguf(const GgufModel& model, const std::vector<TensorRecipe>& recipes,
                       const std::string& path);

}  // namespace penstock::make_model
