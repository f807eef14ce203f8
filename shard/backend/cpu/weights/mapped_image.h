// Packed weights that are used from the page cache at once and moved into memory of our own behind
// the start, piece by piece, at the same addresses.
//
// Why: memory that a process touches for the first time costs a guest far more than reading it, and
// pages of the page cache have been touched before. Why moved all the same: the page cache has
// small pages, which stream a tenth slower than huge ones, and a file can be cut short by others.
//
// Moving a piece: it is copied into fresh memory, which then takes its place (mremap). Whoever
// reads meanwhile sees the same bytes, from the one or the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>

namespace penstock::shard::cpu {

// Whether mapping is the better way for a pool on so many NUMA nodes: transparent huge pages are
// there to move to, and it is one node (of several, each thread would have to touch its own part).
bool MappingPays(std::size_t nodes);

// Bytes of a file, read-only, all pages present.
class FileMapping {
 public:
  FileMapping() = default;
  // From a page's border on. Without data() where it could not be mapped.
  FileMapping(int fd, std::size_t offset, std::size_t bytes);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  const std::byte* data() const { return data_; }

  // Takes the place of `image`, which is as long and begins a page of an anonymous mapping, whose
  // owner unmaps it then.
  bool LayOver(std::span<std::byte> image);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Moves in a thread of its own, behind everything else; the destructor ends it early. A piece that
// there is no memory for stays mapped, and so do those behind it.
class ImageMover {
 public:
  // The image, over which a file was laid, outlives the mover.
  explicit ImageMover(std::span<std::byte> image) : image_(image), thread_([this] { Run(); }) {}
  ~ImageMover() {
    stop_ = true;
    Await();
  }
  ImageMover(const ImageMover&) = delete;
  ImageMover& operator=(const ImageMover&) = delete;

  // Until all has been moved, or can not be.
  void Await() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run();
  bool Move(std::span<std::byte> piece);

  const std::span<std::byte> image_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace penstock::shard::cpu
