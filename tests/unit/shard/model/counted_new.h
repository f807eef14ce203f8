// Counts the memory that the test program takes with `new`.
#pragma once

#include <cstddef>

namespace penstock::shard {

// How much more memory is in use at most during the life of this object than when it was made. One
// object at a time.
class AllocationPeak {
 public:
  AllocationPeak();
  std::size_t Bytes() const;

 private:
  std::size_t before_;
};

}  // namespace penstock::shard
