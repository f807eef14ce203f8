#include "shard/weights/memory_region.h"
#include "common/round_up.h"

#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace penstock::shard {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;

bool NoTransparentHugePages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  return text.find("[never]") != std::string::npos;
}

// Maps `bytes`, whole huge pages, from the administrator's pool if it has them.
void* FromPool(std::size_t bytes) {
  static const bool wanted = NoTransparentHugePages();
  if (!wanted) return MAP_FAILED;
  return ::mmap(nullptr, bytes, kProtection, kPrivate | MAP_HUGETLB, -1, 0);
}

// Maps memory that begins at a multiple of a huge page, so that all of it can lie in huge pages.
void* Aligned(std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes + kHugePage, kProtection, kPrivate, -1, 0);
  if (data == MAP_FAILED) return data;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t aligned = RoundUp(begin, kHugePage);
  if (aligned > begin) ::munmap(data, aligned - begin);
  const std::size_t behind = begin + kHugePage - aligned;
  if (behind > 0) ::munmap(reinterpret_cast<void*>(aligned + bytes), behind);
  ::madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);  // may be ignored
  return reinterpret_cast<void*>(aligned);
}

}  // namespace

absl::StatusOr<MemoryRegion> MemoryRegion::Allocate(std::size_t bytes) {
  MemoryRegion region;
  if (bytes == 0) return region;
  const bool large = bytes >= kHugePage;
  const std::size_t mapped = large ? RoundUp(bytes, kHugePage) : bytes;
  void* data = large ? FromPool(mapped) : ::mmap(nullptr, bytes, kProtection, kPrivate, -1, 0);
  if (large && data == MAP_FAILED) data = Aligned(mapped);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError("cannot allocate " + std::to_string(bytes) + " bytes");
  }
  region.data_ = static_cast<std::byte*>(data);
  region.bytes_ = bytes;
  region.mapped_ = mapped;
  return region;
}

MemoryRegion::~MemoryRegion() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

}  // namespace penstock::shard
