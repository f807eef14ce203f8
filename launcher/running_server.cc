#include "launcher/running_server.h"

#include <curl/curl.h>

#include <memory>

namespace penstock::launcher {
namespace {

constexpr long kTimeoutMs = 1000;
// /info has about a kilobyte.
constexpr std::size_t kMostBytes = 64 << 10;

std::size_t OnBody(char* data, std::size_t, std::size_t size, void* user) {
  auto& body = *static_cast<std::string*>(user);
  if (body.size() + size > kMostBytes) return 0;
  body.append(data, size);
  return size;
}

bool AnswersAsPenstock(const std::string& url) {
  const std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> easy(::curl_easy_init(),
                                                                   &::curl_easy_cleanup);
  std::string body;
  curl_easy_setopt(easy.get(), CURLOPT_URL, (url + "/info").c_str());
  curl_easy_setopt(easy.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, kTimeoutMs);
  // Nothing secret is sent, and the certificate need not name the local address.
  curl_easy_setopt(easy.get(), CURLOPT_SSL_VERIFYPEER, 0L);
  curl_easy_setopt(easy.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body);
  return ::curl_easy_perform(easy.get()) == CURLE_OK &&
         body.find("\"router\":\"penstock-router\"") != body.npos;
}

}  // namespace

std::string RunningPenstock(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != host.npos;
  const std::string address = (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  for (const char* scheme : {"http://", "https://"}) {
    if (AnswersAsPenstock(scheme + address)) return scheme + address;
  }
  return "";
}

}  // namespace penstock::launcher
