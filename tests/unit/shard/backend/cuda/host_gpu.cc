#include "tests/unit/shard/backend/cuda/host_gpu.h"

#include "tests/unit/shard/backend/cuda/test_gpu.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "tests/unit/shard/backend/cuda/emulator.h"
// After the emulator, which it needs.
#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {
namespace {

template <class T>
void Multiply(const LinearArgs& args) {
  const auto* in = static_cast<const T*>(args.in);
  const auto* weight = static_cast<const T*>(args.weight);
  const auto* bias = static_cast<const T*>(args.bias);
  auto* out = static_cast<T*>(args.out);
  std::vector<float> row(args.in_width);
  for (std::uint32_t r = 0; r < args.rows; ++r) {
    for (std::uint32_t k = 0; k < args.in_width; ++k) {
      row[k] = ToFloat(in[std::size_t{r} * args.in_width + k]);
    }
    for (std::uint32_t n = 0; n < args.out_width; ++n) {
      float sum = 0;
      const T* w = weight + std::size_t{n} * args.in_width;
      for (std::uint32_t k = 0; k < args.in_width; ++k) sum += row[k] * ToFloat(w[k]);
      if (bias != nullptr) sum += ToFloat(bias[n]);
      T& result = out[std::size_t{r} * args.out_width + n];
      result = FromFloat<T>(args.accumulate ? ToFloat(result) + sum : sum);
    }
  }
}

absl::Status NotInCapture(const char* what) {
  return emulator::Capturing()
             ? absl::InternalError(std::string(what) + " is not allowed in a capture")
             : absl::OkStatus();
}

}  // namespace

absl::StatusOr<void*> HostGpu::Allocate(std::size_t bytes) {
  if (absl::Status status = NotInCapture("allocation"); !status.ok()) return status;
  auto memory = std::make_unique<std::byte[]>(bytes + 1);
  std::memset(memory.get(), 0xff, bytes);  // NaN: unwritten values show
  void* data = memory.get();
  memory_[data] = std::move(memory);
  return data;
}

void HostGpu::Free(void* memory) { EXPECT_EQ(memory_.erase(memory), 1u) << "freed twice"; }

absl::StatusOr<void*> HostGpu::AllocatePinned(std::size_t bytes) {
  auto memory = Allocate(bytes);
  if (memory.ok()) pinned_[static_cast<const std::byte*>(*memory)] = bytes;
  return memory;
}

void HostGpu::FreePinned(void* memory) {
  EXPECT_EQ(pinned_.erase(static_cast<const std::byte*>(memory)), 1u);
  Free(memory);
}

bool HostGpu::IsPinned(const void* memory) const {
  const auto* begin = static_cast<const std::byte*>(memory);
  const auto behind = pinned_.upper_bound(begin);
  if (behind == pinned_.begin()) return false;
  const auto& [from, bytes] = *std::prev(behind);
  return begin < from + bytes;
}

absl::Status HostGpu::Upload(void* device, const void* host, std::size_t bytes) {
  if (absl::Status status = NotInCapture("an upload"); !status.ok()) return status;
  emulator::Enqueue([=] { std::memcpy(device, host, bytes); });
  return IsPinned(host) ? absl::OkStatus() : Synchronize();
}

absl::Status HostGpu::Download(void* host, const void* device, std::size_t bytes) {
  emulator::Enqueue([=] { std::memcpy(host, device, bytes); });
  return absl::OkStatus();
}

absl::Status HostGpu::Copy(void* target, const void* source, std::size_t bytes) {
  emulator::Enqueue([=] { std::memcpy(target, source, bytes); });
  return absl::OkStatus();
}

absl::Status HostGpu::Zero(void* memory, std::size_t bytes) {
  emulator::Enqueue([=] { std::memset(memory, 0, bytes); });
  return absl::OkStatus();
}

absl::Status HostGpu::Synchronize() {
  if (absl::Status status = NotInCapture("waiting"); !status.ok()) return status;
  emulator::RunQueued(emulator::EnqueuedSoFar());
  return absl::OkStatus();
}

absl::StatusOr<Gpu::Mark> HostGpu::MarkHere(std::function<void()> done) {
  if (absl::Status status = NotInCapture("a mark"); !status.ok()) return status;
  emulator::Enqueue([done = std::move(done)] {
    if (done) done();
  });
  return emulator::EnqueuedSoFar();
}

absl::Status HostGpu::WaitFor(Gpu::Mark mark) {
  emulator::RunQueued(mark);
  return absl::OkStatus();
}

absl::Status HostGpu::Linear(const LinearArgs& args, DType dtype) {
  emulator::Enqueue(
      [=] { dtype == DType::kFloat32 ? Multiply<float>(args) : Multiply<Bf16>(args); });
  return absl::OkStatus();
}

absl::Status HostGpu::TuneLinear(const LinearArgs&, DType) { return NotInCapture("tuning"); }

absl::Status HostGpu::BeginCapture() {
  emulator::BeginCapture();
  return absl::OkStatus();
}

absl::StatusOr<Gpu::Graph> HostGpu::EndCapture() {
  auto work = std::make_unique<Work>(emulator::EndCapture());
  void* graph = work.get();
  graphs_[graph] = std::move(work);
  return graph;
}

absl::Status HostGpu::Launch(Graph graph) {
  for (const std::function<void()>& work : *graphs_.at(graph)) emulator::Enqueue(work);
  return absl::OkStatus();
}

void HostGpu::FreeGraph(Graph graph) { graphs_.erase(graph); }

absl::StatusOr<TestDevice> OpenTestDevice() {
  auto gpu = std::make_unique<HostGpu>();
  DeviceQueue* queue = gpu.get();
  return TestDevice{std::move(gpu), queue};
}

bool IsEmulated() { return true; }
void WorkLate(bool late) { emulator::SetLazy(late); }
absl::Status DeviceIsThere() { return absl::OkStatus(); }
void* AllocateShared(std::size_t bytes) { return ::operator new(bytes); }
void FreeShared(void* memory) { ::operator delete(memory); }
absl::Status FinishKernels() { return absl::OkStatus(); }

}  // namespace penstock::shard::cuda
