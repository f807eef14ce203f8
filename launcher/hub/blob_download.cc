#include "launcher/hub/blob_download.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "common/status.h"

namespace penstock::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSha256Digits = 64;
constexpr std::size_t kSha1Digits = 40;

std::string Hex(const unsigned char* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// The digest of `prefix` and the file after it; empty when the file cannot be read.
std::string Digest(const EVP_MD* kind, std::string_view prefix, const fs::path& path) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), kind, nullptr);
  EVP_DigestUpdate(context.get(), prefix.data(), prefix.size());
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) return "";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &length);
  return Hex(digest.data(), length);
}

}  // namespace

BlobDownload::BlobDownload(fs::path blob, std::string etag, std::uint64_t size)
    : blob_(std::move(blob)),
      part_(blob_.string() + ".penstock-part"),
      ranges_(blob_.string() + ".penstock-ranges"),
      etag_(std::move(etag)),
      size_(size) {}

absl::Status BlobDownload::Error(const fs::path& path) const {
  return absl::UnavailableError(path.string() + ": " + std::strerror(errno));
}

absl::Status BlobDownload::Open() {
  have_.clear();
  present_ = 0;
  part_fd_ = launcher::UniqueFd(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!part_fd_.open()) return Error(part_);
  if (::ftruncate(part_fd_.get(), static_cast<off_t>(size_)) != 0) return Error(part_);
  PENSTOCK_RETURN_IF_ERROR(ReadRecords());
  ranges_fd_ =
      launcher::UniqueFd(::open(ranges_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!ranges_fd_.open()) return Error(ranges_);

  missing_.clear();
  std::uint64_t at = 0;
  for (const auto& [first, end] : have_) {
    if (first > at) missing_[at] = first;
    at = end;
  }
  if (at < size_) missing_[at] = size_;
  return absl::OkStatus();
}

absl::Status BlobDownload::ReadRecords() {
  std::ifstream file(ranges_);
  ByteRange range;
  while (file >> range.first >> range.end) {
    if (range.first < range.end && range.end <= size_) AddPresent(range);
  }
  return absl::OkStatus();
}

void BlobDownload::AddPresent(ByteRange range) {
  // Swallows everything that it touches.
  auto it = have_.upper_bound(range.first);
  if (it != have_.begin() && std::prev(it)->second >= range.first) --it;
  while (it != have_.end() && it->first <= range.end) {
    range.first = std::min(range.first, it->first);
    range.end = std::max(range.end, it->second);
    present_ -= it->second - it->first;
    it = have_.erase(it);
  }
  have_[range.first] = range.end;
  present_ += range.size();
}

std::optional<ByteRange> BlobDownload::Take(std::uint64_t most) {
  if (missing_.empty()) return std::nullopt;
  const auto it = missing_.begin();
  ByteRange range{it->first, std::min(it->second, it->first + most)};
  const std::uint64_t end = it->second;
  missing_.erase(it);
  if (range.end < end) missing_[range.end] = end;
  return range;
}

void BlobDownload::GiveBack(ByteRange range) {
  if (range.size() > 0) missing_[range.first] = range.end;
}

absl::Status BlobDownload::Write(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(part_fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error(part_);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return absl::OkStatus();
}

absl::Status BlobDownload::Record(ByteRange range) {
  if (range.size() == 0) return absl::OkStatus();
  AddPresent(range);
  const std::string line = std::to_string(range.first) + " " + std::to_string(range.end) + "\n";
  const ssize_t count = ::write(ranges_fd_.get(), line.data(), line.size());
  return count == static_cast<ssize_t>(line.size()) ? absl::OkStatus() : Error(ranges_);
}

absl::Status BlobDownload::Verify() const {
  std::string found;
  if (etag_.size() == kSha256Digits) {
    found = Digest(EVP_sha256(), "", part_);
  } else if (etag_.size() == kSha1Digits) {
    const std::string header = "blob " + std::to_string(size_) + std::string(1, '\0');
    found = Digest(EVP_sha1(), header, part_);
  } else {
    return absl::OkStatus();
  }
  if (found == etag_) return absl::OkStatus();
  return absl::DataLossError("checksum " + found + ", expected " + etag_);
}

absl::Status BlobDownload::Finish() {
  const absl::Status right = Verify();
  std::error_code error;
  if (right.ok()) {
    if (::fsync(part_fd_.get()) != 0) return Error(part_);
    fs::rename(part_, blob_, error);
    if (error) return absl::UnavailableError(blob_.string() + ": " + error.message());
  } else {
    fs::remove(part_, error);
  }
  fs::remove(ranges_, error);
  part_fd_.Close();
  ranges_fd_.Close();
  return right;
}

}  // namespace penstock::hub
