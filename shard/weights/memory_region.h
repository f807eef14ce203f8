// A private anonymous mapping, zeroed. A mapping of 2 MiB or more lies in transparent huge pages if
// the kernel gives them. If it never does, the mapping lies in the administrator's pool of huge
// pages (MAP_HUGETLB) if there is one, else in small pages.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <utility>

namespace penstock::shard {

class MemoryRegion {
 public:
  MemoryRegion() = default;
  // Returns ResourceExhausted with the size if there is no memory. Zero bytes give an empty region.
  static absl::StatusOr<MemoryRegion> Allocate(std::size_t bytes);
  ~MemoryRegion();
  MemoryRegion(MemoryRegion&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, 0)) {}
  MemoryRegion& operator=(MemoryRegion&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace penstock::shard
