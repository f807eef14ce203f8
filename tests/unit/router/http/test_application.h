// A small application: answers at once, echoes, or hands the exchange to the test.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "router/http/application.h"

namespace penstock::router {

class TestApplication final : public Application {
 public:
  struct Held {
    HttpRequest request;
    std::shared_ptr<Exchange> exchange;
  };

  RouteMatch Match(const RequestHead& head) const override {
    RouteMatch match;
    match.route = "test";
    if (head.path == "/hello") {
      match.handle = [](HttpRequest, std::shared_ptr<Exchange> exchange) {
        exchange->Respond({200, "text/plain", {}, "hello"});
      };
    } else if (head.path == "/echo") {
      match.handle = [](HttpRequest request, std::shared_ptr<Exchange> exchange) {
        exchange->Respond({200, "text/plain", {}, std::move(request.body)});
      };
    } else if (head.path == "/large") {
      match.handle = [](HttpRequest, std::shared_ptr<Exchange> exchange) {
        exchange->Respond({200, "text/plain", {}, std::string(std::size_t{8} << 20, 'x')});
      };
    } else if (head.path == "/drop") {
      match.handle = [](HttpRequest, std::shared_ptr<Exchange>) {};
    } else if (head.path == "/hold") {
      match.handle = [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
        const std::lock_guard lock(mutex_);
        held_.push_back({std::move(request), std::move(exchange)});
        changed_.notify_all();
      };
    } else {
      match.refusal = HttpResponse{404, "text/plain", {}, "no such route"};
    }
    return match;
  }

  HttpResponse Refuse(const RequestHead&, const HttpFailure& failure) const override {
    return {failure.status, "text/plain", {}, failure.message};
  }

  // The next request that was held; null after the deadline.
  std::unique_ptr<Held> Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return !held_.empty(); })) {
      return nullptr;
    }
    auto held = std::make_unique<Held>(std::move(held_.front()));
    held_.erase(held_.begin());
    return held;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<Held> held_;
};

// A value that another thread sets once.
template <class T>
class Once {
 public:
  void Set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    changed_.notify_all();
  }
  std::optional<T> Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return value_.has_value(); });
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_;
};

}  // namespace penstock::router
