#include "shard/backend/cpu/weights/mapped_image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shard/weights/memory_region.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kFront = 4096;
constexpr std::size_t kBytes = (std::size_t{9} << 20) + 1000;  // two pieces, no whole page

// A word per 64 bytes tells where it lies.
std::size_t WrongWords(const std::byte* image) {
  std::size_t wrong = 0;
  for (std::size_t at = 0; at + 8 <= kBytes; at += 64) {
    std::uint64_t word = 0;
    std::memcpy(&word, image + at, sizeof word);
    wrong += word != at;
  }
  return wrong;
}

std::string FileText() {
  std::string text(kFront + kBytes, 'x');
  for (std::uint64_t at = 0; at + 8 <= kBytes; at += 64) {
    std::memcpy(text.data() + kFront + at, &at, sizeof at);
  }
  return text;
}

bool InUse(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

// A region over which the file of FileText lies.
struct LaidOver {
  LaidOver() {
    folder.Write("image", FileText());
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    FileMapping mapping(fd, kFront, kBytes);
    ::close(fd);
    laid = region.ok() && mapping.data() != nullptr && mapping.LayOver(image());
  }
  std::span<std::byte> image() { return {region->data(), kBytes}; }

  TempFolder folder;
  const std::string path = folder / "image";
  absl::StatusOr<MemoryRegion> region = MemoryRegion::Allocate(kBytes);
  bool laid = false;
};

TEST(MappedImage, IsTheFilesAtOnceAndOurOwnLaterAndTheSameAllTheTime) {
  LaidOver over;
  ASSERT_TRUE(over.laid);
  const std::string& path = over.path;
  const std::span<std::byte> image = over.image();
  EXPECT_TRUE(InUse(path));
  EXPECT_EQ(WrongWords(image.data()), 0u);

  std::atomic<bool> moved = false;
  std::size_t wrong = 0;
  std::thread reader([&] {
    while (!moved) wrong += WrongWords(image.data());
  });
  ImageMover mover(image);
  mover.Await();
  moved = true;
  reader.join();
  EXPECT_EQ(wrong, 0u) << "read while it was moved";
  EXPECT_FALSE(InUse(path));
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(WrongWords(image.data()), 0u);
}

TEST(MappedImage, AMoveThatEndsEarlyLeavesTheRestMapped) {
  LaidOver over;
  ASSERT_TRUE(over.laid);
  const std::span<std::byte> image = over.image();
  { const ImageMover mover(image); }
  EXPECT_EQ(WrongWords(image.data()), 0u);
}

TEST(MappedImage, WhatCannotBeMappedIsNotThere) {
  EXPECT_EQ(FileMapping(-1, 0, 4096).data(), nullptr);
}

}  // namespace
}  // namespace penstock::shard::cpu
