// Counts calls that steps must not make, and finds memory and graphs that were not freed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "shard/backend/cuda/gpu.h"

namespace penstock::shard::cuda {

class CountingGpu : public Gpu {
 public:
  explicit CountingGpu(std::unique_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~CountingGpu() override {
    EXPECT_EQ(live_, 0) << "device memory was not freed";
    EXPECT_EQ(graphs_, 0) << "graphs were not freed";
  }

  int allocations() const { return allocations_; }
  int graph_launches() const { return launches_; }
  int library_products() const { return products_; }  // recorded ones count once
  int syncs() const { return syncs_; }
  int uploads() const { return uploads_; }
  // The last of device memory.
  std::pair<const void*, std::size_t> newest() const { return newest_; }

  absl::StatusOr<void*> Allocate(std::size_t bytes) override {
    ++allocations_, ++live_;
    auto memory = gpu_->Allocate(bytes);
    newest_ = {memory.ok() ? *memory : nullptr, bytes};
    return memory;
  }
  void Free(void* memory) override {
    --live_;
    gpu_->Free(memory);
  }
  absl::StatusOr<void*> AllocatePinned(std::size_t bytes) override {
    ++allocations_, ++live_;
    return gpu_->AllocatePinned(bytes);
  }
  void FreePinned(void* memory) override {
    --live_;
    gpu_->FreePinned(memory);
  }
  absl::StatusOr<std::uint64_t> FreeBytes() override { return gpu_->FreeBytes(); }
  absl::Status Upload(void* device, const void* host, std::size_t bytes) override {
    ++uploads_;
    return gpu_->Upload(device, host, bytes);
  }
  absl::Status Download(void* host, const void* device, std::size_t bytes) override {
    return gpu_->Download(host, device, bytes);
  }
  absl::Status Copy(void* target, const void* source, std::size_t bytes) override {
    return gpu_->Copy(target, source, bytes);
  }
  absl::Status Zero(void* memory, std::size_t bytes) override { return gpu_->Zero(memory, bytes); }
  absl::Status Synchronize() override {
    ++syncs_;
    return gpu_->Synchronize();
  }
  Stream stream() override { return gpu_->stream(); }
  absl::StatusOr<Mark> MarkHere(std::function<void()> done) override {
    return gpu_->MarkHere(std::move(done));
  }
  absl::Status WaitFor(Mark mark) override { return gpu_->WaitFor(mark); }
  absl::Status Linear(const LinearArgs& args, DType dtype) override {
    ++products_;
    return gpu_->Linear(args, dtype);
  }
  absl::Status TuneLinear(const LinearArgs& args, DType dtype) override {
    return gpu_->TuneLinear(args, dtype);
  }
  absl::Status BeginCapture() override { return gpu_->BeginCapture(); }
  absl::StatusOr<Graph> EndCapture() override {
    ++graphs_;
    return gpu_->EndCapture();
  }
  absl::Status Launch(Graph graph) override {
    ++launches_;
    return gpu_->Launch(graph);
  }
  void FreeGraph(Graph graph) override {
    --graphs_;
    gpu_->FreeGraph(graph);
  }

 private:
  std::unique_ptr<Gpu> gpu_;
  int allocations_ = 0;
  int live_ = 0;
  int graphs_ = 0;
  int launches_ = 0;
  int products_ = 0;
  int syncs_ = 0;
  int uploads_ = 0;
  std::pair<const void*, std::size_t> newest_;
};

}  // namespace penstock::shard::cuda
