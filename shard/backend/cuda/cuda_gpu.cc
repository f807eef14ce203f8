#include "shard/backend/cuda/cuda_gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "common/status.h"
#include "shard/backend/cuda/completion_watch.h"
#include "shard/backend/cuda/cublas_linear.h"
#include "shard/backend/cuda/cuda_error.h"

namespace penstock::shard::cuda {
namespace {

// Events of the last marks; an older mark is done when a later one is.
constexpr std::size_t kMarks = 64;
constexpr int kLeastMajor = 8;  // of the compute capability: the oldest device with machine code
constexpr int kLeastMajorForOverlap = 9;
constexpr std::size_t kLeastBytes = 16;  // nothing at all cannot be allocated

static_assert(Gpu::kMostMarks == CompletionWatch::kMostWaiting);

class RealGpu final : public CudaGpu {
 public:
  RealGpu(int index, const CudaParts& parts) : index_(index), parts_(parts) {}
  ~RealGpu() override;

  absl::Status Initialize();
  std::string Description() const override { return description_; }
  std::string Uuid() const override { return uuid_; }
  std::uint64_t TotalBytes() const override { return total_bytes_; }

  absl::StatusOr<void*> Allocate(std::size_t bytes) override;
  void Free(void* memory) override { cudaFree(memory); }
  absl::StatusOr<void*> AllocatePinned(std::size_t bytes) override;
  void FreePinned(void* memory) override { cudaFreeHost(memory); }
  absl::StatusOr<std::uint64_t> FreeBytes() override;
  absl::Status Upload(void* device, const void* host, std::size_t bytes) override {
    return Move(device, host, bytes, cudaMemcpyHostToDevice);
  }
  absl::Status Download(void* host, const void* device, std::size_t bytes) override {
    return Move(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  absl::Status Copy(void* target, const void* source, std::size_t bytes) override {
    return Move(target, source, bytes, cudaMemcpyDeviceToDevice);
  }
  absl::Status Zero(void* memory, std::size_t bytes) override {
    return ToStatus(cudaMemsetAsync(memory, 0, bytes, stream_), "zeroing");
  }
  absl::Status Synchronize() override {
    return ToStatus(cudaStreamSynchronize(stream_), "the device's work");
  }
  Stream stream() override { return stream_; }
  absl::StatusOr<Gpu::Mark> MarkHere(std::function<void()> done) override;
  absl::Status WaitFor(Gpu::Mark mark) override { return watch_->WaitFor(mark); }

  absl::Status Linear(const LinearArgs& args, DType dtype) override {
    return args.rows == 0 ? absl::OkStatus() : linear_->Run(args, dtype);
  }
  absl::Status TuneLinear(const LinearArgs& args, DType dtype) override {
    return linear_->Tune(args, dtype);
  }

  absl::Status BeginCapture() override;
  absl::StatusOr<Graph> EndCapture() override;
  absl::Status Launch(Graph graph) override {
    return ToStatus(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_), "graph launch");
  }
  void FreeGraph(Graph graph) override {
    cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
  }

  absl::StatusOr<DeviceQueue::Mark> Record() override;
  absl::StatusOr<bool> Done(DeviceQueue::Mark mark) override;
  void* NativeStream() override { return stream_; }

 private:
  absl::Status Move(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return absl::OkStatus();
    return ToStatus(cudaMemcpyAsync(target, source, bytes, kind, stream_), "a copy");
  }

  const int index_;
  const CudaParts parts_;
  std::string description_;
  std::string uuid_;
  std::uint64_t total_bytes_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CublasLinear> linear_;
  std::array<cudaEvent_t, kMarks> marks_{};
  DeviceQueue::Mark recorded_ = 0;
  bool capturing_ = false;

  // Events at the ends of steps. A thread that waits for one blocks and does not spin.
  std::array<cudaEvent_t, kMostMarks> ends_{};
  Gpu::Mark ended_ = 0;
  std::unique_ptr<CompletionWatch> watch_;
};

RealGpu::~RealGpu() {
  watch_.reset();
  linear_.reset();
  for (cudaEvent_t mark : marks_) {
    if (mark != nullptr) cudaEventDestroy(mark);
  }
  for (cudaEvent_t end : ends_) {
    if (end != nullptr) cudaEventDestroy(end);
  }
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

absl::Status RealGpu::Initialize() {
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaSetDevice(index_), "device " + std::to_string(index_)));
  cudaDeviceProp properties;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, index_), "properties"));
  if (properties.major < kLeastMajor) {
    return absl::FailedPreconditionError(std::string(properties.name) + " has compute capability " +
                                         std::to_string(properties.major) + "." +
                                         std::to_string(properties.minor) +
                                         ". The least is 8.0 (A100)");
  }
  LetKernelsOverlap(parts_.overlap && properties.major >= kLeastMajorForOverlap);
  uuid_.assign(properties.uuid.bytes, sizeof properties.uuid.bytes);
  total_bytes_ = properties.totalGlobalMem;
  char size[32];
  std::snprintf(size, sizeof size, "%.1f GiB",
                static_cast<double>(properties.totalGlobalMem) / (1u << 30));
  description_ = std::string(properties.name) + ", " + size;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"));
  for (cudaEvent_t& mark : marks_) {
    PENSTOCK_RETURN_IF_ERROR(
        ToStatus(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming), "event"));
  }
  for (cudaEvent_t& end : ends_) {
    PENSTOCK_RETURN_IF_ERROR(ToStatus(
        cudaEventCreateWithFlags(&end, cudaEventDisableTiming | cudaEventBlockingSync), "event"));
  }
  watch_ = std::make_unique<CompletionWatch>([this](Gpu::Mark mark) {
    return ToStatus(cudaEventSynchronize(ends_[mark % kMostMarks]), "a step");
  });
  linear_ = std::make_unique<CublasLinear>(stream_, parts_.skinny_products);
  return linear_->Open();
}

absl::StatusOr<void*> RealGpu::Allocate(std::size_t bytes) {
  void* memory = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaMalloc(&memory, std::max(bytes, kLeastBytes)),
                                    std::to_string(bytes) + " bytes on the device"));
  return memory;
}

absl::StatusOr<void*> RealGpu::AllocatePinned(std::size_t bytes) {
  void* memory = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaMallocHost(&memory, std::max(bytes, kLeastBytes)),
                                    std::to_string(bytes) + " bytes of pinned memory"));
  return memory;
}

absl::StatusOr<std::uint64_t> RealGpu::FreeBytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaMemGetInfo(&free, &total), "free memory"));
  return free;
}

absl::Status RealGpu::BeginCapture() {
  capturing_ = true;
  // Thread-local, since other threads such as NCCL's use the device during a capture.
  return ToStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
}

absl::StatusOr<Gpu::Graph> RealGpu::EndCapture() {
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaStreamEndCapture(stream_, &graph), "capture"));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  PENSTOCK_RETURN_IF_ERROR(ToStatus(made, "graph"));
  // Uploaded now rather than at the first launch, so that its memory is taken before serving
  // begins.
  if (const cudaError_t uploaded = cudaGraphUpload(executable, stream_); uploaded != cudaSuccess) {
    cudaGraphExecDestroy(executable);
    return ToStatus(uploaded, "graph");
  }
  return static_cast<Graph>(executable);
}

absl::StatusOr<Gpu::Mark> RealGpu::MarkHere(std::function<void()> done) {
  // Else the event would be recorded again while a thread waits for its earlier mark.
  if (watch_->Full()) return absl::ResourceExhaustedError("too many steps have not ended");
  const Gpu::Mark mark = ended_ + 1;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventRecord(ends_[mark % kMostMarks], stream_), "mark"));
  ended_ = mark;
  PENSTOCK_RETURN_IF_ERROR(watch_->Add(mark, std::move(done)));
  return mark;
}

absl::StatusOr<DeviceQueue::Mark> RealGpu::Record() {
  if (capturing_) return recorded_;  // nothing has been enqueued since
  const DeviceQueue::Mark mark = recorded_ + 1;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventRecord(marks_[mark % kMarks], stream_), "mark"));
  recorded_ = mark;
  return mark;
}

absl::StatusOr<bool> RealGpu::Done(DeviceQueue::Mark mark) {
  // If the event was recorded again, it belongs to a later mark; when that is done, so is this one.
  const cudaError_t state = cudaEventQuery(marks_[mark % kMarks]);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // it is one of those to CUDA
    return false;
  }
  PENSTOCK_RETURN_IF_ERROR(ToStatus(state, "the device's work"));
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaGpu>> CudaGpu::Open(int index, const CudaParts& parts) {
  auto gpu = std::make_unique<RealGpu>(index, parts);
  PENSTOCK_RETURN_IF_ERROR(gpu->Initialize());
  return std::unique_ptr<CudaGpu>(std::move(gpu));
}

}  // namespace penstock::shard::cuda
