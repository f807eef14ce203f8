#include "launcher/hub/file_fetcher.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "common/status.h"
#include "launcher/hub/hub_error.h"

namespace penstock::hub {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kConnections = 8;
// A file has about 64 ranges: enough for all connections, and few enough for the request limits of
// the hub.
constexpr std::uint64_t kPiecesPerFile = 64;
constexpr std::uint64_t kLeastPiece = 1u << 20;
constexpr std::uint64_t kMostPiece = 64u << 20;
// The most bytes per connection that a killed start has to fetch again.
constexpr std::uint64_t kRecordEvery = 8u << 20;
constexpr int kWrongContents = 2;

constexpr long kOk = 200;
constexpr long kPartial = 206;

std::string Escaped(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const unsigned char c : path) {
    if (kPlain.find(static_cast<char>(c)) != std::string_view::npos) {
      text += static_cast<char>(c);
    } else {
      text += {'%', kDigits[c >> 4], kDigits[c & 15]};
    }
  }
  return text;
}

// "abc" and W/"abc" -> abc, without anything that could lead out of the folder of blobs.
std::string EtagOf(const HttpResponse& response) {
  std::string etag = response.Header("x-linked-etag");
  if (etag.empty()) etag = response.Header("etag");
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase_if(etag, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; });
  return etag;
}

std::optional<std::uint64_t> SizeOf(const HttpResponse& response) {
  std::string text = response.Header("x-linked-size");
  if (text.empty()) text = response.Header("content-length");
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return size;
}

bool IsRedirectOnTheHub(const HttpResponse& response) {
  return response.code >= 300 && response.code < 400 &&
         response.Header("location").starts_with('/') && response.Header("x-linked-etag").empty();
}

}  // namespace

struct FileFetcher::Piece {
  File* file = nullptr;
  ByteRange range;             // what was asked for
  std::uint64_t at = 0;        // next byte to come
  std::uint64_t recorded = 0;  // recorded for a later start up to here
  int attempt = 0;             // File::wrong at its start; older contents are ignored
  absl::Status status;         // of writing
  bool whole = false;          // the answer is the whole file
  bool too_long = false;       // the answer is longer than the range
  bool stale() const { return !file->download || attempt != file->wrong; }
};

FileFetcher::FileFetcher(const HubSettings& settings, HubCache& cache, std::string repo,
                         std::string commit, Progress progress)
    : settings_(settings),
      cache_(cache),
      repo_(std::move(repo)),
      commit_(std::move(commit)),
      progress_(std::move(progress)) {}

absl::Status FileFetcher::Fetch(const std::vector<std::string>& names) {
  files_.clear();
  unanswered_ = names.size();
  for (const std::string& name : names) {
    File& file = files_.emplace_back();
    file.name = name;
    file.url =
        settings_.endpoint + "/" + Escaped(repo_) + "/resolve/" + commit_ + "/" + Escaped(name);
    Ask(file, milliseconds(0));
  }
  PENSTOCK_RETURN_IF_ERROR(transfers_.Run());
  for (const File& file : files_) {
    if (file.download) return absl::InternalError(file.url + ": the download ended early");
    PENSTOCK_RETURN_IF_ERROR(cache_.Link(commit_, file.name, file.etag));
  }
  return absl::OkStatus();
}

void FileFetcher::Ask(File& file, milliseconds delay) {
  HttpRequest request;
  request.url = file.url;
  request.token = settings_.token;
  request.head_only = true;
  request.done = [this, &file](const HttpResponse& response) { OnAnswer(file, response); };
  transfers_.Start(std::move(request), delay);
}

void FileFetcher::OnAnswer(File& file, const HttpResponse& response) {
  if (IsTransient(response)) {
    const auto delay = RetryDelay(file.url, ++file.failures, response);
    if (delay) return Ask(file, *delay);
    return transfers_.Stop(HubError(settings_, repo_, file.name, response));
  }
  if (IsRedirectOnTheHub(response) && ++file.failures < 6) {  // the model was renamed
    file.url = settings_.endpoint + response.Header("location");
    return Ask(file, milliseconds(0));
  }
  const absl::Status planned = Plan(file, response);
  if (!planned.ok()) return transfers_.Stop(planned);
  file.failures = 0;
  if (--unanswered_ == 0) BeginDownloads();
}

absl::Status FileFetcher::Plan(File& file, const HttpResponse& response) {
  if (response.code >= 400) return HubError(settings_, repo_, file.name, response);
  file.etag = EtagOf(response);
  const std::optional<std::uint64_t> size = SizeOf(response);
  if (file.etag.empty() || !size) {
    return absl::UnavailableError("--model-id " + repo_ + ": the answer to " + file.url +
                                  " has no ETag or size, so it is not from a model hub; check "
                                  "HF_ENDPOINT");
  }
  const fs::path blob = cache_.Blob(file.etag);
  std::error_code error;
  if (fs::file_size(blob, error) == *size && !error) return absl::OkStatus();
  file.download = std::make_unique<BlobDownload>(blob, file.etag, *size);
  return file.download->Open();
}

void FileFetcher::BeginDownloads() {
  const absl::Status space = CheckSpace();
  if (!space.ok()) return transfers_.Stop(space);
  for (File& file : files_) {  // empty files, and what an earlier start fetched to the end
    if (!file.download || !file.download->complete()) continue;
    const absl::Status done = Complete(file);
    if (!done.ok()) return transfers_.Stop(done);
  }
  Report();
  FillConnections();
}

absl::Status FileFetcher::CheckSpace() const {
  std::uint64_t needed = 0;
  for (const File& file : files_) {
    if (file.download) needed += file.download->size() - file.download->present();
  }
  std::error_code error;
  const fs::space_info space = fs::space(cache_.folder(), error);
  if (error || space.available >= needed) return absl::OkStatus();
  constexpr std::uint64_t kMiB = 1u << 20;
  return absl::ResourceExhaustedError(
      "--model-id " + repo_ + ": the download needs " + std::to_string(needed / kMiB + 1) +
      " MiB, and " + cache_.folder().string() + " has " + std::to_string(space.available / kMiB) +
      " MiB free; set --huggingface-hub-cache or HF_HUB_CACHE to another folder");
}

void FileFetcher::FillConnections() {
  for (File& file : files_) {
    while (connections_ < kConnections && StartPiece(file, milliseconds(0))) {
    }
  }
}

bool FileFetcher::StartPiece(File& file, milliseconds delay) {
  if (!file.download || (file.ranges != Ranges::kGiven && file.transfers > 0)) return false;
  const std::uint64_t size = file.download->size();
  const std::uint64_t most = file.ranges == Ranges::kIgnored
                                 ? size
                                 : std::clamp(size / kPiecesPerFile, kLeastPiece, kMostPiece);
  const std::optional<ByteRange> range = file.download->Take(most);
  if (!range) return false;

  auto piece = std::make_shared<Piece>();
  piece->file = &file;
  piece->range = *range;
  piece->at = piece->recorded = range->first;
  piece->attempt = file.wrong;
  HttpRequest request;
  request.url = file.url;
  request.token = settings_.token;
  request.range = HttpRequest::Range{range->first, range->end - 1};
  request.body = [this, piece](long code, std::string_view bytes) {
    return OnBytes(*piece, code, bytes);
  };
  request.done = [this, piece](HttpResponse response) { OnPieceDone(piece, std::move(response)); };
  ++connections_;
  ++file.transfers;
  transfers_.Start(std::move(request), delay);
  return true;
}

bool FileFetcher::OnBytes(Piece& piece, long code, std::string_view bytes) {
  if (code != kPartial && code != kOk) return true;  // an error page
  File& file = *piece.file;
  if (piece.stale()) return false;
  if (code == kOk && !piece.whole) {  // the file from its beginning, whatever was asked for
    piece.whole = true;
    file.ranges = Ranges::kIgnored;
    piece.at = piece.recorded = 0;
  }
  if (code == kPartial && file.ranges == Ranges::kUnknown) {
    file.ranges = Ranges::kGiven;
    FillConnections();
  }
  return TakeBytes(piece, bytes);
}

bool FileFetcher::TakeBytes(Piece& piece, std::string_view bytes) {
  File& file = *piece.file;
  const std::uint64_t end = piece.whole ? file.download->size() : piece.range.end;
  if (bytes.size() > end - piece.at) {
    piece.too_long = true;
    return false;
  }
  piece.status = file.download->Write(piece.at, bytes);
  if (!piece.status.ok()) return false;
  piece.at += bytes.size();
  if (!piece.whole || piece.at > file.farthest) file.failures = 0;
  if (piece.whole) file.farthest = std::max(file.farthest, piece.at);
  if (piece.at - piece.recorded >= kRecordEvery) {
    piece.status = file.download->Record({piece.recorded, piece.at});
    piece.recorded = piece.at;
    Report();
  }
  return piece.status.ok();
}

void FileFetcher::OnPieceDone(const std::shared_ptr<Piece>& piece, HttpResponse response) {
  File& file = *piece->file;
  --connections_;
  --file.transfers;
  if (piece->stale()) return FillConnections();
  absl::Status status = piece->status;
  if (status.ok()) status = file.download->Record({piece->recorded, piece->at});
  if (status.ok() && file.download->complete()) {
    status = Complete(file);
    if (status.ok()) return FillConnections();
  }
  if (!status.ok()) return transfers_.Stop(status);
  const bool any = piece->at > piece->range.first;
  file.download->GiveBack(
      {std::clamp(piece->at, piece->range.first, piece->range.end), piece->range.end});
  Report();
  if (response.status.ok() && any) return FillConnections();
  const bool refused = response.status.ok() && response.code >= 400 && !IsTransient(response);
  if (refused) return transfers_.Stop(HubError(settings_, repo_, file.name, response));
  if (piece->too_long) {
    response.refused = "its answer is longer than what was asked for";
  } else if (response.status.ok() && response.code < 300) {
    response.refused = "its answer ends before the bytes that were asked for";
  }
  Retry(file, response);
}

void FileFetcher::Retry(File& file, const HttpResponse& response) {
  const auto delay = RetryDelay(file.url, ++file.failures, response);
  if (!delay) return transfers_.Stop(HubError(settings_, repo_, file.name, response));
  StartPiece(file, *delay);
}

absl::Status FileFetcher::Complete(File& file) {
  const absl::Status right = file.download->Finish();
  if (right.ok()) {
    file.download.reset();
    return right;
  }
  if (!absl::IsDataLoss(right)) return right;
  if (++file.wrong >= kWrongContents) {
    return absl::DataLossError("--model-id " + repo_ + ": " + file.name +
                               " came with wrong contents twice: " + std::string(right.message()));
  }
  return file.download->Open();
}

void FileFetcher::Report() const {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  for (const File& file : files_) {
    if (!file.download) continue;
    done += file.download->present();
    total += file.download->size();
  }
  if (total > 0) progress_(done, total);
}

}  // namespace penstock::hub
