#include "shard/executor/warmup_table.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/fnv.h"
#include "common/kept_file.h"
#include "common/log.h"
#include "common/status.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTitle = "penstock-warmup 3";
constexpr std::string_view kEnd = "end";
constexpr std::string_view kSuffix = ".warmup";
constexpr std::size_t kMostTables = 16;
constexpr off_t kMostBytes = 64 << 10;  // of a file

// The name of a file, and the checksum that shows damage.
std::string HashOf(std::string_view text) {
  return absl::StrCat(absl::Hex(Fnv1a(text), absl::kZeroPad16));
}

std::string NameOf(std::string_view identity) { return HashOf(identity).append(kSuffix); }

std::string HeadOf(const std::string& identity) {
  return std::string(kTitle) + "\n" + identity + "\n";
}

std::string EndOf(std::string_view text) { return std::string(kEnd) + " " + HashOf(text) + "\n"; }

void RemoveOldest(const fs::path& folder) {
  std::error_code ec;
  std::vector<std::pair<fs::file_time_type, fs::path>> tables;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (!IsKeptName(entry.path().filename(), kSuffix)) continue;
    tables.emplace_back(entry.last_write_time(ec), entry.path());
  }
  std::sort(tables.begin(), tables.end());
  for (std::size_t i = 0; i + kMostTables < tables.size(); ++i) fs::remove(tables[i].second, ec);
}

}  // namespace

WarmupTable::WarmupTable(std::string folder, std::string identity)
    : folder_(std::move(folder)), identity_(std::move(identity)) {
  if (!folder_.empty()) path_ = (fs::path(folder_) / NameOf(identity_)).string();
}

std::vector<StepTimeSample> WarmupTable::Read() const {
  const absl::StatusOr<Descriptor> kept = OpenKept(path_);
  if (!kept.ok()) {
    if (!absl::IsNotFound(kept.status())) {
      log::Warn("the warm-up table " + Message(kept.status()) + "; it is measured again");
    }
    return {};
  }
  struct stat info = {};
  if (::fstat(kept->get(), &info) != 0 || info.st_size > kMostBytes) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const auto bytes = std::as_writable_bytes(std::span(text));
  if (!ReadAt(kept->get(), bytes.data(), bytes.size(), 0)) return {};
  const std::string head = HeadOf(identity_);
  const std::size_t end = text.rfind(kEnd);
  const bool whole = end != std::string::npos && text.substr(end) == EndOf(text.substr(0, end));
  if (!whole || !text.starts_with(head)) return {};
  std::istringstream file(text.substr(head.size(), end - head.size()));
  std::vector<StepTimeSample> samples;
  StepTimeSample sample;
  Duration::rep nanoseconds = 0;
  while (file >> sample.prefill_tokens >> sample.decode_rows >> sample.context_tokens >>
         nanoseconds) {
    sample.time = Duration(nanoseconds);
    samples.push_back(sample);
  }
  return samples;
}

void WarmupTable::Write(const std::vector<StepTimeSample>& samples) const {
  if (path_.empty()) return;
  std::ostringstream text;
  text << HeadOf(identity_);
  for (const StepTimeSample& sample : samples) {
    text << sample.prefill_tokens << ' ' << sample.decode_rows << ' ' << sample.context_tokens
         << ' ' << sample.time.count() << '\n';
  }
  text << EndOf(text.str());
  if (const absl::Status replaced = Replace(text.str()); !replaced.ok()) {
    return log::Warn("the warm-up table is not kept in " + folder_ + ": " + Message(replaced));
  }
  RemoveOldest(folder_);
}

absl::Status WarmupTable::Replace(const std::string& text) const {
  PENSTOCK_ASSIGN_OR_RETURN(UnfinishedFile file, UnfinishedFile::Create(path_));
  const auto bytes = std::as_bytes(std::span(text));
  if (!WriteAt(file.fd(), bytes.data(), bytes.size(), 0)) {
    return absl::UnavailableError(std::generic_category().message(errno));
  }
  return file.Finish();
}

}  // namespace penstock::shard
