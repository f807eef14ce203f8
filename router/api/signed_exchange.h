// An exchange whose answer is signed by its dialect.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "router/api/dialect.h"
#include "router/http/application.h"

namespace penstock::router {

class SignedExchange final : public Exchange {
 public:
  // `dialect` must outlive it.
  SignedExchange(std::shared_ptr<Exchange> exchange, const Dialect& dialect, RequestHead head)
      : exchange_(std::move(exchange)), dialect_(dialect), head_(std::move(head)) {}

  void AddHeaders(std::vector<Header> headers) override {
    exchange_->AddHeaders(std::move(headers));
  }
  void Respond(HttpResponse response) override {
    dialect_.Sign(head_, response);
    exchange_->Respond(std::move(response));
  }
  void StartStream(HttpResponse head) override {
    dialect_.Sign(head_, head);
    exchange_->StartStream(std::move(head));
  }
  bool Write(std::string_view events) override { return exchange_->Write(events); }
  void Finish() override { exchange_->Finish(); }
  void OnClose(std::function<void(CloseReason)> callback) override {
    exchange_->OnClose(std::move(callback));
  }
  void Ended(RequestEnd end) override { exchange_->Ended(std::move(end)); }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const Dialect& dialect_;
  const RequestHead head_;
};

// `exchange` itself if the dialect does not sign.
inline std::shared_ptr<Exchange> Signed(std::shared_ptr<Exchange> exchange, const Dialect& dialect,
                                        const RequestHead& head) {
  if (!dialect.Signs()) return exchange;
  return std::make_shared<SignedExchange>(std::move(exchange), dialect, head);
}

}  // namespace penstock::router
