// Parts of the CUDA backend that can be switched off, to find out which of them is at fault or what
// each is worth.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>

namespace penstock::shard::cuda {

struct CudaParts {
  bool graphs = true;           // decode steps are recorded
  bool tensor_cores = true;     // for attention, where there are kernels
  bool skinny_products = true;  // own kernels for products of few rows, where they are faster
  bool fusion = true;           // a product and its gate in one kernel
  bool overlap = true;          // kernels may begin before earlier ones are complete
};

// `without`: names of parts with commas between them: graphs, tensor-cores, skinny-products,
// fusion, overlap. InvalidArgument names another word.
absl::StatusOr<CudaParts> PartsWithout(std::string_view without);

}  // namespace penstock::shard::cuda
