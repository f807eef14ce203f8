#include "shard/weights/memory_region.h"

#include <sys/mman.h>

#include <string>

namespace penstock::shard {

absl::StatusOr<MemoryRegion> MemoryRegion::Allocate(std::size_t bytes) {
  MemoryRegion region;
  if (bytes == 0) return region;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError("cannot allocate " + std::to_string(bytes) + " bytes");
  }
  ::madvise(data, bytes, MADV_HUGEPAGE);  // a wish; small pages work too
  region.data_ = static_cast<std::byte*>(data);
  region.bytes_ = bytes;
  return region;
}

MemoryRegion::~MemoryRegion() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace penstock::shard
