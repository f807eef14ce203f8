// A server on a free port that runs the small test application.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "router/http/server.h"
#include "tests/unit/router/http/test_application.h"

namespace penstock::router {

class ServerFixture : public ::testing::Test {
 protected:
  void Start() {
    options_.port = 0;
    server_ = std::make_unique<HttpServer>(options_, application_, metrics_);
    auto port = server_->Start();
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *port;
    ASSERT_NE(port_, 0);
  }

  HttpOptions options_;
  TestApplication application_;
  Metrics metrics_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
};

}  // namespace penstock::router
