// GEMMs by cuBLASLt, with the algorithm measured for each size. In the CUDA build only.
//
// The library proposes algorithms, with a workspace that allows split-K. Tune times each on the
// device, and SkinnyLinear for few rows, and keeps the fastest. Before each run the device's cache
// is overwritten, since in a step the weights of the next layer are not in the cache. A size that
// was not tuned uses the library's first proposal.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "shard/backend/cuda/gpu.h"

namespace penstock::shard::cuda {

class CublasLinear {
 public:
  // `stream` outlives the object.
  // `skinny`: whether SkinnyLinear may be chosen.
  CublasLinear(cudaStream_t stream, bool skinny) : stream_(stream), skinny_(skinny) {}
  ~CublasLinear();
  CublasLinear(const CublasLinear&) = delete;
  CublasLinear& operator=(const CublasLinear&) = delete;

  absl::Status Open();
  absl::Status Run(const LinearArgs& args, DType dtype);
  absl::Status Tune(const LinearArgs& args, DType dtype);

 private:
  struct Shape {
    std::uint32_t rows, in_width, out_width;
    bool bias;
    DType dtype;
    std::uint32_t alignment;  // of `in`, which may begin at any row; others have kMostAlignment
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };
  struct Plan;                                         // descriptors of one GEMM
  using Choice = std::optional<cublasLtMatmulAlgo_t>;  // empty: SkinnyLinear

  static Shape ShapeOf(const LinearArgs& args, DType dtype);
  absl::Status Multiply(const Plan& plan, const LinearArgs& args,
                        const cublasLtMatmulAlgo_t& algorithm);
  absl::StatusOr<Choice> Fastest(const Plan& plan, const LinearArgs& args, DType dtype);
  // The time of several runs together, each with other data in the device's cache.
  absl::StatusOr<float> Milliseconds(const std::function<absl::Status()>& run);

  const cudaStream_t stream_;
  const bool skinny_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  void* other_data_ = nullptr;  // while something is timed, if memory is left
  std::size_t cache_bytes_ = 0;
  std::map<Shape, Choice> choices_;
};

}  // namespace penstock::shard::cuda
