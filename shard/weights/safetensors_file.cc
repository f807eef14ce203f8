#include "shard/weights/safetensors_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "common/status.h"
#include "shard/weights/checksum.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

// Pieces of each tensor in the identity of a file. Two versions of a tensor hardly ever agree at
// the beginning, the end and two places between. A file with thousands of tensors takes fewer
// pieces.
constexpr std::size_t kPieces = 4;
constexpr std::size_t kPiecesOfAll = 4096;
constexpr std::uint64_t kPieceBytes = 4096;

// The path to open with O_NOFOLLOW: `path` itself, or the blob that a hub cache's link names.
absl::StatusOr<std::string> ResolveHubLink(const std::string& path) {
  std::error_code ec;
  if (!fs::is_symlink(path, ec)) return path;
  fs::path target = fs::read_symlink(path, ec);
  if (ec) return absl::NotFoundError("cannot read the symbolic link: " + ec.message());
  if (target.is_relative()) target = fs::path(path).parent_path() / target;
  if (target.parent_path().filename() != "blobs") {
    return absl::InvalidArgumentError(
        "is a symbolic link that does not lead into the blobs folder of a hub cache");
  }
  return target.string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  auto resolved = ResolveHubLink(path);
  if (!resolved.ok()) return WithContext(resolved.status(), name);
  // Opening a pipe would block; the check below refuses it.
  const int fd = ::open(resolved->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    const std::string reason = std::generic_category().message(errno);
    return absl::NotFoundError(name + ": cannot be opened: " + reason);
  }
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile(name, *resolved, fd));
  const absl::Status status = file->ReadHeader();
  if (!status.ok()) return WithContext(status, name);
  return file;
}

SafetensorsFile::~SafetensorsFile() { ::close(fd_); }

absl::Status SafetensorsFile::ReadHeader() {
  struct stat info = {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError("is not a regular file");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size == 0) return absl::InvalidArgumentError("is empty; fetch it again");
  if (size < 8) {
    return absl::InvalidArgumentError("is cut short: the file has " + std::to_string(size) +
                                      " bytes, a header alone takes 8 or more; fetch it again");
  }
  std::array<unsigned char, 8> prefix;
  PENSTOCK_RETURN_IF_ERROR(Read(0, prefix.size(), prefix.data()));
  if (std::memcmp(prefix.data(), "GGUF", 4) == 0) {
    return absl::InvalidArgumentError("is a GGUF file, which is not read, and not safetensors");
  }
  if (std::memcmp(prefix.data(), "version ", 8) == 0) {
    return absl::InvalidArgumentError("is a pointer of Git LFS, not the weights; run git lfs pull");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::uint64_t{prefix[i]} << (8 * i);
  const std::uint64_t limit = std::min(kMaxHeaderBytes, size - 8);
  if (length > limit) {
    if (length <= kMaxHeaderBytes && BeginsHeader(size)) return CutShort(size, 8 + length, 0);
    return BadValue(
        "header length", std::to_string(length),
        "at most " + std::to_string(limit) + " bytes in a file of " + std::to_string(size));
  }
  std::string text(length, '\0');
  PENSTOCK_RETURN_IF_ERROR(Read(8, length, text.data()));
  header_checksum_ = Checksum(std::as_bytes(std::span(text)));
  PENSTOCK_ASSIGN_OR_RETURN(tensors_, ParseSafetensorsHeader(text, 8 + length, size - 8 - length));
  return absl::OkStatus();
}

// Whether what follows the length looks like a header, as far as there is anything.
bool SafetensorsFile::BeginsHeader(std::uint64_t size) const {
  char first = '{';
  return size == 8 || (Read(8, 1, &first).ok() && first == '{');
}

std::string SafetensorsFile::Identity() const {
  struct stat info = {};
  std::error_code ec;
  const std::string path = fs::canonical(path_, ec).string();
  if (ec || ::fstat(fd_, &info) != 0) return "";
  const auto sampled = SampledChecksum();
  if (!sampled.ok()) return "";
  return path + " " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) +
         "." + std::to_string(info.st_mtim.tv_nsec) + " " + std::to_string(header_checksum_) + " " +
         std::to_string(*sampled);
}

std::string SafetensorsFile::Noted() const {
  struct stat info = {};
  if (::fstat(fd_, &info) != 0) return "";
  return std::to_string(info.st_ctim.tv_sec) + "." + std::to_string(info.st_ctim.tv_nsec);
}

absl::StatusOr<std::uint64_t> SafetensorsFile::SampledChecksum() const {
  const std::size_t most = kPiecesOfAll / std::max<std::size_t>(1, tensors_.size());
  const std::size_t pieces = std::clamp(most, std::size_t{1}, kPieces);
  std::vector<std::uint64_t> sums;
  std::array<std::byte, kPieceBytes> piece;
  for (const TensorInfo& tensor : tensors_) {
    const std::uint64_t bytes = std::min(kPieceBytes, tensor.bytes);
    const std::uint64_t last = tensor.bytes - bytes;  // where the last piece begins
    const std::size_t count = last == 0 ? 1 : pieces;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t begin = count == 1 ? last / 2 : last * i / (count - 1);
      PENSTOCK_RETURN_IF_ERROR(Read(tensor.offset + begin, bytes, piece.data()));
      sums.push_back(Checksum(std::span(piece.data(), bytes)));
    }
  }
  return Checksum(std::as_bytes(std::span(sums)));
}

absl::Status SafetensorsFile::Read(std::uint64_t offset, std::uint64_t bytes, void* out) const {
  auto* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, next, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(name_ + ": read failed at byte " + std::to_string(offset) +
                                    ": " + std::generic_category().message(errno));
    }
    if (got == 0) {
      return absl::DataLossError(name_ + ": ends at byte " + std::to_string(offset) + ", " +
                                 std::to_string(bytes) + " bytes early");
    }
    next += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
