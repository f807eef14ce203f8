#include "shard/executor/warmup_table.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/log.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTitle = "penstock-warmup 2";
constexpr std::string_view kEnd = "end";
constexpr std::string_view kSuffix = ".warmup";
constexpr std::size_t kMostTables = 16;
constexpr std::size_t kMostSteps = 256;

// FNV-1a of 64 bits, for the name alone: the identity is in the file.
std::string NameOf(std::string_view identity) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char c : identity) hash = (hash ^ c) * 0x100000001b3u;
  std::string name;
  for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[(hash >> shift) & 15];
  return name.append(kSuffix);
}

void RemoveOldest(const fs::path& folder) {
  std::error_code ec;
  std::vector<std::pair<fs::file_time_type, fs::path>> tables;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (entry.path().extension() != kSuffix) continue;
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
  std::error_code ec;
  if (!fs::is_regular_file(path_, ec)) return {};  // opening a pipe would wait
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line) || line != kTitle) return {};
  if (!std::getline(file, line) || line != identity_) return {};
  std::vector<StepTimeSample> samples;
  StepTimeSample sample;
  Duration::rep nanoseconds = 0;
  while (samples.size() < kMostSteps && file >> sample.prefill_tokens >> sample.decode_rows >>
                                            sample.context_tokens >> nanoseconds) {
    if (nanoseconds <= 0) return {};
    sample.time = Duration(nanoseconds);
    samples.push_back(sample);
  }
  file.clear();
  if (!(file >> line) || line != kEnd) return {};
  return samples;
}

void WarmupTable::Write(const std::vector<StepTimeSample>& samples) const {
  if (path_.empty()) return;
  std::error_code ec;
  fs::create_directories(folder_, ec);
  const std::string unfinished = path_ + "." + std::to_string(::getpid());
  {
    std::ofstream file(unfinished, std::ios::trunc);
    file << kTitle << '\n' << identity_ << '\n';
    for (const StepTimeSample& sample : samples) {
      file << sample.prefill_tokens << ' ' << sample.decode_rows << ' ' << sample.context_tokens
           << ' ' << sample.time.count() << '\n';
    }
    file << kEnd << '\n';
    if (!file.flush()) ec = std::make_error_code(std::errc::io_error);
  }
  if (!ec) fs::rename(unfinished, path_, ec);
  if (!ec) return RemoveOldest(folder_);
  log::Warn("the warm-up's table is not kept in " + folder_ + ": " + ec.message());
  fs::remove(unfinished, ec);
}

}  // namespace penstock::shard
