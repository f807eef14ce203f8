#include "shard/backend/cpu/weights/packed_cache.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/kept_file.h"
#include "common/log.h"
#include "common/round_up.h"
#include "common/status.h"
#include "shard/weights/checksum.h"

namespace penstock::shard::cpu {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x33'6b'63'61'70'53'4e'50;  // "PNSpack3"
constexpr std::size_t kChunk = std::size_t{2} << 20;         // a huge page
constexpr const char* kSuffix = ".packed";
constexpr int kBackgroundNice = 19;

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t identity_bytes = 0;
  std::uint64_t image_bytes = 0;
  std::uint64_t chunk_bytes = kChunk;
  std::uint64_t checksum = 0;  // of everything before the image, with 0 here
};

std::size_t ChunksOf(std::size_t image) { return (image + kChunk - 1) / kChunk; }

// Bytes before the image.
std::size_t FrontBytes(std::size_t identity, std::size_t image) {
  const std::size_t bytes = sizeof(Header) + identity + ChunksOf(image) * sizeof(std::uint64_t);
  return RoundUp(bytes, kPageBytes);
}

// Writes everything before the image to `front`, which is zero and has FrontBytes.
void FillFront(std::span<std::byte> front, const std::string& identity,
               std::span<const std::byte> image, const std::stop_token& stop) {
  Header header;
  header.identity_bytes = identity.size();
  header.image_bytes = image.size();
  std::memcpy(front.data() + sizeof header, identity.data(), identity.size());
  std::byte* sums = front.data() + sizeof header + identity.size();
  for (std::size_t i = 0; i < ChunksOf(image.size()) && !stop.stop_requested(); ++i) {
    const std::uint64_t sum =
        Checksum(image.subspan(i * kChunk, std::min(kChunk, image.size() - i * kChunk)));
    std::memcpy(sums + i * sizeof sum, &sum, sizeof sum);
  }
  std::memcpy(front.data(), &header, sizeof header);
  header.checksum = Checksum(front);
  std::memcpy(front.data(), &header, sizeof header);
}

// The checksums of the chunks, if the file holds the image of this identity; else nothing.
std::vector<std::uint64_t> ReadFront(int fd, const std::string& identity, std::size_t image) {
  std::vector<std::byte> front(FrontBytes(identity.size(), image));
  if (!ReadAt(fd, front.data(), front.size(), 0)) return {};
  Header header;
  std::memcpy(&header, front.data(), sizeof header);
  const std::uint64_t checksum = std::exchange(header.checksum, 0);
  std::memcpy(front.data(), &header, sizeof header);
  const bool whole = header.magic == kMagic && header.identity_bytes == identity.size() &&
                     header.image_bytes == image && header.chunk_bytes == kChunk &&
                     checksum == Checksum(front);
  const std::byte* text = front.data() + sizeof header;
  if (!whole || std::memcmp(text, identity.data(), identity.size()) != 0) return {};
  std::vector<std::uint64_t> sums(ChunksOf(image));
  std::memcpy(sums.data(), text + identity.size(), sums.size() * sizeof(std::uint64_t));
  return sums;
}

struct File {
  fs::path path;
  std::uint64_t bytes = 0;
  fs::file_time_type used;
};

// Removes old files until `bytes` more fit; false where the bound alone is too small.
bool MakeRoom(const fs::path& folder, std::uint64_t bytes, std::uint64_t most) {
  if (bytes > most) return false;
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (!entry.is_regular_file(ec)) continue;
    if (!IsKeptName(entry.path().filename(), kSuffix)) continue;
    files.push_back({entry.path(), entry.file_size(ec), entry.last_write_time(ec)});
    total += files.back().bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total + bytes <= most) break;
    fs::remove(file.path, ec);
    total -= std::min(total, file.bytes);
  }
  return total + bytes <= most;
}

class Writer {
 public:
  Writer(std::string path, std::uint64_t most, std::string identity,
         std::span<const std::byte> image)
      : path_(std::move(path)), most_(most), identity_(std::move(identity)), image_(image) {}

  void Run(const std::stop_token& stop) const {
    // The warm-up is measured at the same time.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kBackgroundNice);
    const auto begin = std::chrono::steady_clock::now();
    const std::string error = Write(stop);
    if (stop.stop_requested()) return;
    if (!error.empty())
      return log::Warn("the weights cache " + path_ + " is not written: " + error);
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    log::Info("weights cache: " + std::to_string(image_.size() >> 20) + " MiB written to " + path_ +
              " in " + std::to_string(spent.count()) + " ms");
  }

 private:
  // Returns an error text, or an empty string.
  std::string Write(const std::stop_token& stop) const {
    const std::size_t front_bytes = FrontBytes(identity_.size(), image_.size());
    if (!MakeRoom(fs::path(path_).parent_path(), front_bytes + image_.size(), most_)) {
      return "its " + std::to_string((front_bytes + image_.size()) >> 20) +
             " MiB do not fit --weights-cache-size, " + std::to_string(most_ >> 20) + " MiB";
    }
    auto file = UnfinishedFile::Create(path_);
    if (!file.ok()) return Message(file.status());
    std::vector<std::byte> front(front_bytes);
    const int failed = Fill(file->fd(), front, stop);
    if (failed != 0) return std::generic_category().message(failed);
    return stop.stop_requested() ? "" : Message(file->Finish());
  }

  // Returns an error number, or 0.
  int Fill(int fd, std::span<std::byte> front, const std::stop_token& stop) const {
    const auto size = static_cast<off_t>(front.size() + image_.size());
    if (const int failed = ::posix_fallocate(fd, 0, size); failed != 0) return failed;
    FillFront(front, identity_, image_, stop);
    for (std::size_t at = 0; at < image_.size() && !stop.stop_requested(); at += kChunk) {
      const std::size_t bytes = std::min(kChunk, image_.size() - at);
      if (!WriteAt(fd, image_.data() + at, bytes, front.size() + at)) return errno;
    }
    return WriteAt(fd, front.data(), front.size(), 0) ? 0 : errno;
  }

  const std::string path_;
  const std::uint64_t most_;
  const std::string identity_;
  const std::span<const std::byte> image_;
};

std::uint64_t ChecksumOf(const std::string& text) {
  return Checksum(std::as_bytes(std::span(text)));
}

std::string NameOf(const std::string& identity) {
  std::uint64_t hash = ChecksumOf(identity);
  std::string name;
  for (int i = 0; i < 16; ++i, hash >>= 4) name += "0123456789abcdef"[hash & 15];
  return name + kSuffix;
}

}  // namespace

PackedCache::PackedCache(std::string folder, std::uint64_t most, const std::string& identity,
                         const std::string& changed)
    : most_(most), identity_(identity + changed) {
  if (folder.empty() || identity.empty()) return;
  path_ = (fs::path(folder) / NameOf(identity)).string();
}

bool PackedCache::Read(std::span<std::byte> image, const OwnerOf& owner, WorkerPool& pool) const {
  if (path_.empty()) return false;
  const absl::StatusOr<Descriptor> file = OpenKept(path_);
  if (!file.ok()) {
    if (absl::IsNotFound(file.status())) return false;
    log::Warn("the weights cache " + Message(file.status()) + "; it is written again");
    return false;
  }
  struct stat info = {};
  const std::size_t front_bytes = FrontBytes(identity_.size(), image.size());
  const bool fits = ::fstat(file->get(), &info) == 0 &&
                    static_cast<std::size_t>(info.st_size) == front_bytes + image.size();
  const std::vector<std::uint64_t> sums =
      fits ? ReadFront(file->get(), identity_, image.size()) : std::vector<std::uint64_t>();
  std::atomic<bool> good = !sums.empty();
  pool.Run([&](std::uint32_t thread) {
    for (std::size_t i = 0; i < sums.size() && good; ++i) {
      const std::size_t at = i * kChunk;
      if (owner(at) != thread) continue;
      const std::span<std::byte> chunk = image.subspan(at, std::min(kChunk, image.size() - at));
      const bool read = ReadAt(file->get(), chunk.data(), chunk.size(), front_bytes + at);
      if (!read || Checksum(chunk) != sums[i]) good = false;
    }
  });
  if (!good) {
    log::Warn("the weights cache " + path_ +
              " is damaged, or files of the model have changed since; it is written again");
    return false;
  }
  ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);  // marks it as used
  return true;
}

std::jthread PackedCache::Write(std::span<const std::byte> image) const {
  if (path_.empty()) return {};
  return std::jthread([writer = Writer(path_, most_, identity_, image)](
                          const std::stop_token& stop) { writer.Run(stop); });
}

}  // namespace penstock::shard::cpu
