#include "shard/backend/cpu/weights/mapped_image.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "common/log.h"
#include "common/thread_priority.h"
#include "common/time.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLeastPiece = 4 * kHugePage;
constexpr std::size_t kMostPieces = 4096;  // each may remain a mapping, of 65,530 by default
constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;

std::size_t WholePages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

bool MappingPays(std::size_t nodes) { return nodes == 1 && !NoTransparentHugePages(); }

FileMapping::FileMapping(int fd, std::size_t offset, std::size_t bytes) : bytes_(bytes) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, static_cast<off_t>(offset));
  if (data != MAP_FAILED) data_ = static_cast<std::byte*>(data);
}

FileMapping::~FileMapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

bool FileMapping::LayOver(std::span<std::byte> image) {
  if (::mremap(data_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, image.data()) == MAP_FAILED) {
    return false;
  }
  data_ = nullptr;
  return true;
}

void ImageMover::Run() {
  const Time begin = SteadyNow();
  const std::size_t share = image_.size() / kMostPieces / kHugePage * kHugePage + kHugePage;
  const std::size_t piece = std::max(kLeastPiece, share);
  for (std::size_t at = 0; at < image_.size(); at += piece) {
    if (!Move(image_.subspan(at, std::min(piece, image_.size() - at)))) return;
  }
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyNow() - begin);
  log::Info("weights: " + std::to_string(image_.size() >> 20) +
            " MiB moved from the page cache to own memory in " + std::to_string(spent.count()) +
            " ms");
}

bool ImageMover::Move(std::span<std::byte> piece) {
  const std::size_t bytes = WholePages(piece.size());
  void* fresh = ::mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, kAnonymous, -1, 0);
  if (fresh == MAP_FAILED) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(fresh);
  const std::uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  auto* copy = reinterpret_cast<std::byte*>(aligned);
  ::madvise(copy, bytes, MADV_HUGEPAGE);
  RunBehind([&] {
    for (std::size_t at = 0; at < piece.size() && !stop_; at += kHugePage) {
      std::memcpy(copy + at, piece.data() + at, std::min(kHugePage, piece.size() - at));
    }
  });
  const bool moved = !stop_ && ::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                        piece.data()) != MAP_FAILED;
  ::munmap(fresh, aligned - begin + (moved ? 0 : bytes));
  ::munmap(copy + bytes, begin + kHugePage - aligned);
  return moved;
}

}  // namespace penstock::shard::cpu
