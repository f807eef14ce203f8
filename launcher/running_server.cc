#include "launcher/running_server.h"

#include <curl/curl.h>

#include <boost/json/object.hpp>
#include <memory>

#include "common/json_parse.h"

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

struct Answer {
  long status = 0;  // 0: none
  std::string body;
};

Answer Get(const std::string& url) {
  const std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> easy(::curl_easy_init(),
                                                                   &::curl_easy_cleanup);
  Answer answer;
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, kTimeoutMs);
  // Nothing secret is sent, and the certificate need not name the local address.
  curl_easy_setopt(easy.get(), CURLOPT_SSL_VERIFYPEER, 0L);
  curl_easy_setopt(easy.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &answer.body);
  if (::curl_easy_perform(easy.get()) != CURLE_OK) return {};
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

std::string Text(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value == nullptr || !value->is_string() ? "" : std::string(value->as_string());
}

std::optional<RunningServer> Ask(const std::string& url) {
  constexpr std::size_t kMaxDepth = 8;
  const auto info = ParseJson(Get(url + "/info").body, kMaxDepth);
  if (!info.ok() || !info->is_object()) return std::nullopt;
  if (Text(info->as_object(), "router") != "penstock-router") return std::nullopt;
  return RunningServer{url, Text(info->as_object(), "version"), Get(url + "/health").status == 200};
}

}  // namespace

std::optional<RunningServer> FindRunningServer(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != host.npos;
  const std::string address = (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  for (const char* scheme : {"http://", "https://"}) {
    if (auto server = Ask(scheme + address)) return server;
  }
  return std::nullopt;
}

}  // namespace penstock::launcher
