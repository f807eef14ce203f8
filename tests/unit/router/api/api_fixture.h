// The whole HTTP side on a loopback port, in front of a fake engine.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/http_service.h"
#include "tests/unit/router/support/fake_engine.h"
#include "tests/unit/router/support/raw_client.h"

namespace penstock::router {

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    engine_.facts = {.model_id = "org/demo",
                     .served_name = "demo",
                     .dtype = "float32",
                     .device = "cpu",
                     .max_input_tokens = 128,
                     .max_total_tokens = 256,
                     .max_batch_total_tokens = 4096,
                     .vocabulary = 1000,
                     .has_chat_template = true};
  }
  ~ApiTest() override {
    if (service_) service_->Stop(Duration{0});
    engine_.ForgetCalls();
  }

  void Start() {
    http_.port = 0;
    service_ = std::make_unique<HttpService>(http_, api_, dialects_, engine_, metrics_);
    auto port = service_->Start();
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *port;
  }

  // One request on a connection of its own, answered by a script or an error.
  testing::RawResponse Post(std::string_view path, std::string_view body,
                            std::string_view headers = "") {
    if (!service_) Start();
    return testing::RawClient::Fetch(port_, testing::Post(path, body, headers));
  }
  testing::RawResponse Get(std::string_view path, std::string_view headers = "") {
    if (!service_) Start();
    return testing::RawClient::Fetch(port_, testing::Get(path, headers));
  }

  // Answers every request with these tokens (ids 1, 2, …, logprob -0.25 k) and then ends it.
  void AnswerWith(std::vector<std::string> texts, FinishReason reason) {
    engine_.script = [texts, reason](const GenerationRequest& request) {
      return Events(texts, reason, request.seed.value_or(7), request.sampling.do_sample);
    };
  }

  static std::vector<GenerationEvent> Events(const std::vector<std::string>& texts,
                                             FinishReason reason, std::uint64_t seed,
                                             bool sampled) {
    std::vector<GenerationEvent> events;
    events.emplace_back(GenerationStart{RequestId(1), 5, seed, {}});
    GenerationEnd end;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const bool special = texts[i].starts_with("<");
      events.emplace_back(testing::TokenEvent(static_cast<std::uint32_t>(i),
                                              static_cast<TokenId>(i + 1), texts[i],
                                              -0.25f * static_cast<float>(i + 1), special));
      if (!special) end.text += texts[i];
    }
    end.reason = reason;
    end.generated_tokens = static_cast<std::uint32_t>(texts.size());
    end.prompt_tokens = 5;
    end.seed = seed;
    end.sampled = sampled;
    events.emplace_back(std::move(end));
    return events;
  }

  void FailWith(GenerationError error) {
    engine_.script = [error](const GenerationRequest&) {
      return std::vector<GenerationEvent>{error};
    };
  }

  HttpOptions http_;
  ApiOptions api_;
  DialectOptions dialects_;
  testing::FakeEngine engine_;
  Metrics metrics_;
  std::unique_ptr<HttpService> service_;
  std::uint16_t port_ = 0;
};

}  // namespace penstock::router
