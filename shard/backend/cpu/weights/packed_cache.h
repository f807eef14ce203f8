// Packed weights on disk: a later start reads them in the form in which they are used. One file for
// each model, rank, instruction set and weight format:
//
//   header     magic, sizes, checksum of everything before the image  } whole pages
//   identity   what the weights were made of and how, text            }
//   checksums  one for each chunk of the image                        }
//   image      the memory region of the weights, byte for byte
//
// A file with another identity, a wrong size or a wrong checksum is not used; a new one replaces it
// (common/kept_file.h). Errors (a full disk, no permission) are warnings in the log.
//
// The files of the folder take at most `most` bytes together: before a file is written, those that
// were used longest ago are removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard::cpu {

class PackedCache {
 public:
  // The folder exists. With an empty folder or identity there is no cache: nothing is read or
  // written. `changed` says when the files that the identity names last changed
  // (WeightSource::Noted). It does not affect the name of the file, so a new file replaces the one
  // before the change.
  PackedCache(std::string folder, std::uint64_t most, const std::string& identity,
              const std::string& changed);

  const std::string& path() const { return path_; }

  // Which thread will use the byte at an offset of the image. That thread reads it, so that it lies
  // on the thread's NUMA node.
  using OwnerOf = std::function<std::uint32_t(std::size_t offset)>;

  // Fills `image` with all threads. Without a usable file, returns false and `image` is undefined.
  bool Read(std::span<std::byte> image, const OwnerOf& owner, WorkerPool& pool) const;

  // Writes in a thread with background priority, which ends early if it is told to stop. `image`
  // must not change and outlives the thread. No thread without a cache.
  std::jthread Write(std::span<const std::byte> image) const;

 private:
  const std::uint64_t most_;
  const std::string identity_;
  std::string path_;
};

}  // namespace penstock::shard::cpu
