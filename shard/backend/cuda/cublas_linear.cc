#include "shard/backend/cuda/cublas_linear.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "common/status.h"
#include "shard/backend/cuda/cuda_error.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr int kCandidates = 16;
constexpr int kTimedRuns = 7;
constexpr std::uint32_t kMostAlignment = 256;  // of allocations, and what the library assumes

cudaDataType_t TypeOf(DType dtype) { return dtype == DType::kFloat32 ? CUDA_R_32F : CUDA_R_16BF; }

}  // namespace

// Row-major out[rows, n] = in[rows, k] * weight[n, k]^T is, to the column-major library, the
// product of the transposed weight [k, n] with in [k, rows].
struct CublasLinear::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t weight = nullptr;
  cublasLtMatrixLayout_t in = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {weight, in, out}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }

  absl::Status Make(const LinearArgs& args, const Shape& shape);
  absl::Status AddBias(const LinearArgs& args, DType dtype);
  absl::Status Prefer(std::uint32_t alignment);
};

CublasLinear::Shape CublasLinear::ShapeOf(const LinearArgs& args, DType dtype) {
  const auto address = reinterpret_cast<std::uintptr_t>(args.in);
  const auto lowest_bit = static_cast<std::uint32_t>(address & (~address + 1) & 0xffffffffu);
  return {args.rows,      args.in_width,
          args.out_width, args.bias != nullptr,
          dtype,          lowest_bit == 0 ? kMostAlignment : std::min(lowest_bit, kMostAlignment)};
}

absl::Status CublasLinear::Plan::Make(const LinearArgs& args, const Shape& shape) {
  const cudaDataType_t type = TypeOf(shape.dtype);
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product"));
  const cublasOperation_t transposed = CUBLAS_OP_T;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                              sizeof transposed),
               "transposition"));
  if (args.bias != nullptr) PENSTOCK_RETURN_IF_ERROR(AddBias(args, shape.dtype));
  const auto layout = [type](cublasLtMatrixLayout_t* target, std::uint64_t rows,
                             std::uint64_t columns) {
    return ToStatus(
        cublasLtMatrixLayoutCreate(target, type, rows, columns, static_cast<std::int64_t>(rows)),
        "layout");
  };
  PENSTOCK_RETURN_IF_ERROR(layout(&weight, args.in_width, args.out_width));
  PENSTOCK_RETURN_IF_ERROR(layout(&in, args.in_width, args.rows));
  PENSTOCK_RETURN_IF_ERROR(layout(&out, args.out_width, args.rows));
  return Prefer(shape.alignment);
}

absl::Status CublasLinear::Plan::Prefer(std::uint32_t alignment) {
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cublasLtMatmulPreferenceCreate(&preference), "preference"));
  const std::size_t workspace = kWorkspaceBytes;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &workspace, sizeof workspace),
      "workspace"));
  // Operand B is `in`.
  return ToStatus(
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                           &alignment, sizeof alignment),
      "alignment");
}

absl::Status CublasLinear::Plan::AddBias(const LinearArgs& args, DType dtype) {
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  const cudaDataType_t type = TypeOf(dtype);
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                              sizeof epilogue),
               "epilogue"));
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type,
                                              sizeof type),
               "bias type"));
  return ToStatus(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                 &args.bias, sizeof args.bias),
                  "bias");
}

CublasLinear::~CublasLinear() {
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
  if (workspace_ != nullptr) cudaFree(workspace_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

absl::Status CublasLinear::Open() {
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cublasLtCreate(&handle_), "start"));
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&begin_), "event"));
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&end_), "event"));
  int device = 0;
  int cache = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGetDevice(&device), "device"));
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "cache"));
  cache_bytes_ = static_cast<std::size_t>(cache);
  return ToStatus(cudaMalloc(&workspace_, kWorkspaceBytes), "workspace of GEMMs");
}

absl::Status CublasLinear::Multiply(const Plan& plan, const LinearArgs& args,
                                    const cublasLtMatmulAlgo_t& algorithm) {
  const float one = 1.0f;
  const float old = args.accumulate ? 1.0f : 0.0f;  // factor of what `out` holds
  return ToStatus(cublasLtMatmul(handle_, plan.product, &one, args.weight, plan.weight, args.in,
                                 plan.in, &old, args.out, plan.out, args.out, plan.out, &algorithm,
                                 workspace_, kWorkspaceBytes, stream_),
                  "product");
}

absl::StatusOr<float> CublasLinear::Milliseconds(const std::function<absl::Status()>& run) {
  PENSTOCK_RETURN_IF_ERROR(run());  // loads the kernel
  float sum = 0;
  for (int i = 0; i < kTimedRuns; ++i) {
    if (other_data_ != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(
          ToStatus(cudaMemsetAsync(other_data_, i, 2 * cache_bytes_, stream_), "timing"));
    }
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventRecord(begin_, stream_), "timing"));
    PENSTOCK_RETURN_IF_ERROR(run());
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventRecord(end_, stream_), "timing"));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventSynchronize(end_), "timing"));
    float spent = 0;
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventElapsedTime(&spent, begin_, end_), "timing"));
    sum += spent;
  }
  return sum;
}

absl::StatusOr<CublasLinear::Choice> CublasLinear::Fastest(const Plan& plan, const LinearArgs& args,
                                                           DType dtype) {
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found;
  int count = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(
      cublasLtMatmulAlgoGetHeuristic(handle_, plan.product, plan.weight, plan.in, plan.out,
                                     plan.out, plan.preference, kCandidates, found.data(), &count),
      "choice of an algorithm"));
  bool any = false;
  Choice best;
  float shortest = std::numeric_limits<float>::infinity();
  if (skinny_ && IsSkinny(args, dtype)) {
    PENSTOCK_ASSIGN_OR_RETURN(shortest,
                              Milliseconds([&] { return SkinnyLinear({args}, stream_); }));
    any = true;
  }
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulAlgo_t& algorithm = found[static_cast<std::size_t>(i)].algo;
    const auto spent = Milliseconds([&] { return Multiply(plan, args, algorithm); });
    // Some algorithms refuse some sizes; clear the error, which the next launch would report.
    if (!spent.ok()) cudaGetLastError();
    if (!spent.ok() || *spent >= shortest) continue;
    shortest = *spent;
    best = algorithm;
    any = true;
  }
  if (any) return best;
  return absl::InternalError("cublasLt has no algorithm for a GEMM of " +
                             std::to_string(args.rows) + " x " + std::to_string(args.in_width) +
                             " x " + std::to_string(args.out_width));
}

absl::Status CublasLinear::Tune(const LinearArgs& args, DType dtype) {
  const Shape shape = ShapeOf(args, dtype);
  if (choices_.contains(shape)) return absl::OkStatus();
  Plan plan;
  PENSTOCK_RETURN_IF_ERROR(plan.Make(args, shape));
  // Without it the measured times are less exact.
  if (cudaMalloc(&other_data_, 2 * cache_bytes_) != cudaSuccess) {
    other_data_ = nullptr;
    cudaGetLastError();
  }
  const auto fastest = Fastest(plan, args, dtype);
  cudaFree(std::exchange(other_data_, nullptr));
  if (!fastest.ok()) return fastest.status();
  choices_[shape] = *fastest;
  return absl::OkStatus();
}

absl::Status CublasLinear::Run(const LinearArgs& args, DType dtype) {
  const Shape shape = ShapeOf(args, dtype);
  const auto found = choices_.find(shape);
  if (found != choices_.end() && !found->second.has_value()) return SkinnyLinear({args}, stream_);
  Plan plan;
  PENSTOCK_RETURN_IF_ERROR(plan.Make(args, shape));
  if (found != choices_.end()) return Multiply(plan, args, *found->second);
  cublasLtMatmulHeuristicResult_t first;
  int count = 0;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cublasLtMatmulAlgoGetHeuristic(handle_, plan.product, plan.weight, plan.in, plan.out,
                                              plan.out, plan.preference, 1, &first, &count),
               "choice of an algorithm"));
  if (count == 0) return absl::InternalError("cublasLt has no algorithm for a GEMM");
  choices_.emplace(shape, first.algo);
  return Multiply(plan, args, first.algo);
}

}  // namespace penstock::shard::cuda
