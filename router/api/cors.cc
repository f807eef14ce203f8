#include "router/api/cors.h"

#include <algorithm>
#include <utility>

namespace penstock::router {
namespace {

class HeaderedExchange final : public Exchange {
 public:
  HeaderedExchange(std::shared_ptr<Exchange> exchange, std::vector<Header> headers)
      : exchange_(std::move(exchange)), headers_(std::move(headers)) {}

  void Respond(HttpResponse response) override { exchange_->Respond(Add(std::move(response))); }
  void StartStream(HttpResponse head) override { exchange_->StartStream(Add(std::move(head))); }
  bool Write(std::string_view events) override { return exchange_->Write(events); }
  void Finish() override { exchange_->Finish(); }
  void OnClose(std::function<void(CloseReason)> callback) override {
    exchange_->OnClose(std::move(callback));
  }
  void CountTokens(TokenCounts counts) override { exchange_->CountTokens(counts); }

 private:
  HttpResponse Add(HttpResponse response) const {
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    return response;
  }

  std::shared_ptr<Exchange> exchange_;
  const std::vector<Header> headers_;
};

}  // namespace

std::vector<Header> CorsHeaders(const std::vector<std::string>& allowed, std::string_view origin) {
  if (allowed.empty()) return {};
  std::vector<Header> headers = {
      {"vary", "origin, access-control-request-method, access-control-request-headers"}};
  const auto allows = [&allowed](std::string_view name) {
    return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  };
  if (allows("*")) {
    headers.push_back({"access-control-allow-origin", "*"});
  } else if (!origin.empty() && allows(origin)) {
    headers.push_back({"access-control-allow-origin", std::string(origin)});
  }
  return headers;
}

std::vector<Header> PreflightHeaders() {
  return {{"access-control-allow-methods", "GET,POST"},
          {"access-control-allow-headers", "content-type"}};
}

std::shared_ptr<Exchange> WithHeaders(std::shared_ptr<Exchange> exchange,
                                      std::vector<Header> headers) {
  if (headers.empty()) return exchange;
  return std::make_shared<HeaderedExchange>(std::move(exchange), std::move(headers));
}

}  // namespace penstock::router
