// Downloads files of one model into the cache. Asks for their sizes and checksums, then fetches
// missing ranges over several connections. Continues the download of an earlier start.
//
// Lost connections, 429, 5xx and wrong contents are retried. After six retries of a file without a
// new byte, Fetch ends with an error.
//
// Fetch blocks. One thread.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "launcher/hub/blob_download.h"
#include "launcher/hub/http_transfers.h"
#include "launcher/hub/hub_cache.h"
#include "launcher/hub/hub_settings.h"

namespace penstock::hub {

// Bytes on disk, and bytes of all files.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

class FileFetcher {
 public:
  // All must outlive the fetcher; the cache is locked by the caller.
  FileFetcher(const HubSettings& settings, HubCache& cache, std::string repo, std::string commit,
              Progress progress);

  // Fetches the named files into the snapshot.
  absl::Status Fetch(const std::vector<std::string>& names);

 private:
  enum class Ranges : std::uint8_t { kUnknown, kGiven, kIgnored };
  struct File {
    std::string name;
    std::string url;
    std::string etag;
    std::unique_ptr<BlobDownload> download;  // null: the cache has it
    int failures = 0;                        // in a row, without a byte
    int wrong = 0;                           // times that the checksum was
    Ranges ranges = Ranges::kUnknown;
    std::uint64_t farthest = 0;  // that a transfer of the whole file came
    int transfers = 0;           // now; one at a time unless the server gives ranges
  };
  struct Piece;

  void Ask(File& file, std::chrono::milliseconds delay);
  void OnAnswer(File& file, const HttpResponse& response);
  absl::Status Plan(File& file, const HttpResponse& response);
  void BeginDownloads();
  absl::Status CheckSpace() const;
  void FillConnections();
  bool StartPiece(File& file, std::chrono::milliseconds delay);
  bool OnBytes(Piece& piece, long code, std::string_view bytes);
  bool TakeBytes(Piece& piece, std::string_view bytes);
  void OnPieceDone(const std::shared_ptr<Piece>& piece, HttpResponse response);
  void Retry(File& file, const HttpResponse& response);
  absl::Status Complete(File& file);
  void Report() const;

  const HubSettings& settings_;
  HubCache& cache_;
  const std::string repo_;
  const std::string commit_;
  const Progress progress_;
  HttpTransfers transfers_;
  std::list<File> files_;  // callbacks hold references
  std::size_t unanswered_ = 0;
  int connections_ = 0;
};

}  // namespace penstock::hub
