// Packed weights on disk, so that a second start reads them as they are in memory. One file per
// model folder, rank, instruction set and so on:
//
//   header   magic, sizes, checksum of everything before the image,     } whole pages
//            checksum of when the model's files were noted as changed   }
//   identity what the weights were made of and how (WeightStore), text  }
//   checksums one per chunk of the image                                }
//   image    the region, byte for byte
//
// A file whose identity or times are others, that is too short, or whose checksums do not fit is
// not used, and written again. (The times are no part of its name, so that the new file takes the
// old one's place.) Writing happens behind the start, under another name, and the finished
// file takes the old one's place at once; of several processes that would write it one does. What
// goes wrong with it (a full disk, no permission) is a warning. Files of others:
// common/kept_file.h.
//
// Bounded: the files of the folder take at most `most` bytes; those that were used longest ago go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard::cpu {

// Writes in a thread of its own; the destructor ends it early.
class CacheWriter {
 public:
  virtual ~CacheWriter() = default;
  // Until the file is there, or will not come.
  virtual void Await() = 0;
};

class PackedCache {
 public:
  // The folder is there. An empty one or identity: no cache, nothing below does anything. `noted`
  // says when the files that the identity names were changed (WeightSource::Noted).
  PackedCache(std::string folder, std::uint64_t most, std::string identity,
              const std::string& noted);

  const std::string& path() const { return path_; }

  // Which thread will use the byte at an offset of the image, and so had best touch it first.
  using OwnerOf = std::function<std::uint32_t(std::size_t offset)>;

  // Fills `image`, which begins a page, on all threads, or has the file's pages take its place
  // (mapped_image.h).
  // False: there is no such file, or none that can be used; the image's bytes then mean nothing,
  // those that were zero may not be so any more.
  enum class Found : std::uint8_t { kNothing, kRead, kMapped };
  Found Read(std::span<std::byte> image, const OwnerOf& owner, WorkerPool& pool);

  // `image` must not change and outlives the writer. Null without a cache.
  std::unique_ptr<CacheWriter> Write(std::span<const std::byte> image) const;

 private:
  const std::string folder_;
  const std::uint64_t most_;
  const std::string identity_;
  const std::uint64_t noted_;
  std::string path_;
};

}  // namespace penstock::shard::cpu
