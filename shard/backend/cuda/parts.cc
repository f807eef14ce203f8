#include "shard/backend/cuda/parts.h"

#include <string>

namespace penstock::shard::cuda {

absl::StatusOr<CudaParts> PartsWithout(std::string_view without) {
  CudaParts parts;
  while (!without.empty()) {
    const std::size_t comma = without.find(',');
    const std::string_view name = without.substr(0, comma);
    without.remove_prefix(comma == without.npos ? without.size() : comma + 1);
    if (name == "graphs") {
      parts.graphs = false;
    } else if (name == "tensor-cores") {
      parts.tensor_cores = false;
    } else if (name == "skinny-products") {
      parts.skinny_products = false;
    } else if (name == "fusion") {
      parts.fusion = false;
    } else if (name == "overlap") {
      parts.overlap = false;
    } else {
      return absl::InvalidArgumentError(
          "`" + std::string(name) +
          "` is no part of the CUDA backend. The parts are: graphs, tensor-cores, "
          "skinny-products, fusion, overlap");
    }
  }
  return parts;
}

}  // namespace penstock::shard::cuda
