#include "launcher/hub/http_transfers.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "common/version.h"

namespace penstock::hub {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kConnectSeconds = 30;
constexpr long kStalledSeconds = 30;  // without a byte: the transfer has failed
constexpr long kRedirects = 8;
constexpr std::chrono::milliseconds kLongestWait(60'000);

struct Transfer {
  HttpRequest request;
  HttpResponse response;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;

  ~Transfer() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
  }
};

std::string_view Trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::size_t OnHeader(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) transfer.response.headers.clear();  // of a redirect before it
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  transfer.response.headers[std::move(name)] = Trimmed(line.substr(colon + 1));
  return size;
}

std::size_t OnBody(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (!transfer.request.body) return size;
  long code = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &code);
  return transfer.request.body(code, {data, size}) ? size : 0;
}

void Configure(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  CURL* easy = transfer.easy;
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, ("penstock/" + std::string(Version())).c_str());
  curl_easy_setopt(easy, CURLOPT_NOBODY, request.head_only ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request.head_only ? 0L : 1L);
  curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kRedirects);
  if (!request.token.empty()) {  // libcurl drops it when a redirect leads to another host
    transfer.headers =
        curl_slist_append(nullptr, ("Authorization: Bearer " + request.token).c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers);
  }
  if (request.range) {
    const std::string range =
        std::to_string(request.range->first) + "-" + std::to_string(request.range->last);
    curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
}

}  // namespace

std::string HttpResponse::Header(std::string_view name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? "" : it->second;
}

bool IsHttpUrl(const std::string& text) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), &curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return false;
  char* scheme = nullptr;
  curl_url_get(url.get(), CURLUPART_SCHEME, &scheme, 0);
  const std::string name = scheme == nullptr ? "" : scheme;
  curl_free(scheme);
  return name == "http" || name == "https";
}

struct HttpTransfers::Impl {
  CURLM* multi = curl_multi_init();
  std::map<CURL*, std::unique_ptr<Transfer>> running;
  std::multimap<Clock::time_point, HttpRequest> later;
  absl::Status stopped;

  ~Impl() {
    for (auto& [easy, transfer] : running) curl_multi_remove_handle(multi, easy);
    running.clear();
    curl_multi_cleanup(multi);
  }

  void Begin(HttpRequest request) {
    auto transfer = std::make_unique<Transfer>();
    transfer->request = std::move(request);
    transfer->easy = curl_easy_init();
    Configure(*transfer);
    curl_multi_add_handle(multi, transfer->easy);
    running[transfer->easy] = std::move(transfer);
  }

  void BeginDue() {
    const Clock::time_point now = Clock::now();
    while (!later.empty() && later.begin()->first <= now) {
      HttpRequest request = std::move(later.begin()->second);
      later.erase(later.begin());
      Begin(std::move(request));
    }
  }

  std::chrono::milliseconds UntilNextDue() const {
    if (later.empty()) return kLongestWait;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(later.begin()->first - Clock::now());
    return std::clamp(left, std::chrono::milliseconds(0), kLongestWait);
  }

  void CollectEnded() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      End(message->easy_handle, message->data.result);
    }
  }

  void End(CURL* easy, CURLcode result) {
    const std::unique_ptr<Transfer> transfer = std::move(running.extract(easy).mapped());
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &transfer->response.code);
    curl_multi_remove_handle(multi, easy);
    if (result != CURLE_OK) {
      transfer->response.status =
          absl::UnavailableError(transfer->request.url + ": " + curl_easy_strerror(result));
    }
    transfer->request.done(std::move(transfer->response));
  }
};

HttpTransfers::HttpTransfers() : impl_(std::make_unique<Impl>()) {}
HttpTransfers::~HttpTransfers() = default;

void HttpTransfers::Start(HttpRequest request, std::chrono::milliseconds delay) {
  impl_->later.emplace(Clock::now() + delay, std::move(request));
}

void HttpTransfers::Stop(absl::Status why) {
  if (impl_->stopped.ok()) impl_->stopped = std::move(why);
}

absl::Status HttpTransfers::Run() {
  while (impl_->stopped.ok()) {
    impl_->BeginDue();
    if (impl_->running.empty() && impl_->later.empty()) break;
    int active = 0;
    curl_multi_perform(impl_->multi, &active);
    impl_->CollectEnded();
    if (!impl_->stopped.ok() || (impl_->running.empty() && impl_->later.empty())) continue;
    const bool due = impl_->UntilNextDue().count() == 0;
    if (due || active < static_cast<int>(impl_->running.size())) continue;
    // Wakes for any socket of a transfer, for libcurl's own deadlines, and for the next start.
    curl_multi_poll(impl_->multi, nullptr, 0, static_cast<int>(impl_->UntilNextDue().count()),
                    nullptr);
  }
  return impl_->stopped;
}

}  // namespace penstock::hub
