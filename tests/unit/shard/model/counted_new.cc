#include "tests/unit/shard/model/counted_new.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> in_use = 0;
std::atomic<std::size_t> most = 0;

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = in_use += ::malloc_usable_size(memory);
  std::size_t before = most.load();
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  in_use -= ::malloc_usable_size(memory);
  std::free(memory);
}

std::size_t RoundedUp(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

// The other forms of `new` and `delete` call these.
void* operator new(std::size_t bytes) { return Counted(std::malloc(bytes == 0 ? 1 : bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return Counted(std::aligned_alloc(align, RoundedUp(bytes, align)));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }

namespace penstock::shard {

AllocationPeak::AllocationPeak() : before_(in_use) { most = in_use.load(); }

std::size_t AllocationPeak::Bytes() const { return most - before_; }

}  // namespace penstock::shard
