#include "router/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/status.h"
#include "tests/unit/router/http/server_fixture.h"
#include "tests/unit/router/support/raw_client.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Get;
using ::testing::HasSubstr;
using testing::Post;
using testing::RawClient;
using testing::RawResponse;

class ServerTest : public ServerFixture {};

TEST_F(ServerTest, AnswersManyRequestsOnOneConnection) {
  Start();
  RawClient client(port_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(Post("/echo", "body " + std::to_string(i))));
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "body " + std::to_string(i));
  }
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Start();
  RawClient client(port_);
  client.Send(Post("/echo", "1") + Post("/hold", "2") + Post("/echo", "3") + Get("/nowhere"));
  EXPECT_EQ(client.ReadResponse().body, "1");
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->request.body, "2");
  EXPECT_TRUE(client.StaysSilent(milliseconds(30)));  // 3 must not overtake 2
  held->exchange->Respond({200, "", {}, "two"});
  EXPECT_EQ(client.ReadResponse().body, "two");
  EXPECT_EQ(client.ReadResponse().body, "3");
  EXPECT_EQ(client.ReadResponse().status, 404);
}

TEST_F(ServerTest, ARequestWithoutEndIsNotTakenForPipelining) {
  Start();
  RawClient client(port_);
  client.Send(Post("/echo", "a"));
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Le");
  EXPECT_EQ(client.ReadResponse().body, "a");
  client.Send("ngth: 1\r\n\r\nb");
  EXPECT_EQ(client.ReadResponse().body, "b");
}

TEST_F(ServerTest, RequestIdsAreEchoedWhenWellFormedAndMadeOtherwise) {
  Start();
  EXPECT_EQ(
      RawClient::Fetch(port_, Get("/hello", "X-Request-Id: my-id.1\r\n")).headers["x-request-id"],
      "my-id.1");
  const std::string made =
      RawClient::Fetch(port_, Get("/hello", "X-Request-Id: a b\r\n")).headers["x-request-id"];
  EXPECT_EQ(made.size(), 24U) << made;
}

TEST_F(ServerTest, AmbiguousFramingIsAnswered400AndTheConnectionCloses) {
  Start();
  RawClient client(port_);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n"
      "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.ReadsEof());  // the smuggled request is not served
  EXPECT_EQ(RawClient::Fetch(port_, Get("/hello")).status, 200);
}

TEST_F(ServerTest, AHundredMegabyteBodyIsRefusedBeforeItIsSent) {
  Start();
  RawClient waiting(port_);
  waiting.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(waiting.ReadResponse().status, 413);
  // A client that sends first and reads later still gets to read the answer.
  RawClient eager(port_);
  eager.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
  const std::string megabyte(1 << 20, 'a');
  for (int i = 0; i < 95 && eager.Send(megabyte); ++i) {
  }
  const RawResponse response = eager.ReadResponse();
  EXPECT_EQ(response.status, 413);
  EXPECT_THAT(response.body, HasSubstr("16777216"));
}

TEST_F(ServerTest, ExpectContinueIsAnsweredBeforeTheBodyIsRead) {
  Start();
  RawClient client(port_);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("hi");
  EXPECT_EQ(client.ReadResponse().body, "hi");
}

TEST_F(ServerTest, ARefusedRouteDoesNotAskForTheBody) {
  Start();
  RawClient client(port_);
  client.Send(
      "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.ReadsEof());
}

TEST_F(ServerTest, LargeBodiesGoBothWays) {
  Start();
  const std::string body(std::size_t{3} << 20, 'b');
  EXPECT_EQ(RawClient::Fetch(port_, Post("/echo", body)).body, body);
  EXPECT_EQ(RawClient::Fetch(port_, Get("/large")).body.size(), std::size_t{8} << 20);
}

TEST_F(ServerTest, HeadHasALengthAndNoBody) {
  Start();
  RawClient client(port_);
  client.Send("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n" + Get("/hello"));
  EXPECT_EQ(client.ReadResponse(true).headers.at("content-length"), "5");
  EXPECT_EQ(client.ReadResponse().body, "hello");
}

TEST_F(ServerTest, Http10ClosesUnlessAskedToStay) {
  Start();
  RawClient client(port_);
  client.Send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().headers.at("connection"), "keep-alive");
  client.Send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().headers.at("connection"), "close");
  EXPECT_TRUE(client.ReadsEof());
}

TEST_F(ServerTest, ARequestWithAClosedSendingSideIsStillAnsweredWhenThatIsAtOnce) {
  Start();
  RawClient client(port_);
  client.Send(Get("/hello") + Get("/hello"));
  client.CloseSending();
  EXPECT_EQ(client.ReadResponse().body, "hello");
  EXPECT_EQ(client.ReadResponse().body, "hello");
}

TEST_F(ServerTest, ADisconnectIsToldToTheApplicationAtOnce) {
  Start();
  auto client = std::make_unique<RawClient>(port_);
  client->Send(Post("/hold", "x"));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  Once<CloseReason> closed;
  held->exchange->OnClose([&](CloseReason reason) { closed.Set(reason); });
  client->Close();
  EXPECT_EQ(closed.Wait(), CloseReason::kClientGone);
  held->exchange->Respond({200, "", {}, "too late"});  // harmless
}

TEST_F(ServerTest, AHalfClosedClientCountsAsGoneWhileItWaits) {
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", "x"));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  Once<CloseReason> closed;
  held->exchange->OnClose([&](CloseReason reason) { closed.Set(reason); });
  client.CloseSending();
  EXPECT_EQ(closed.Wait(), CloseReason::kClientGone);
}

TEST_F(ServerTest, ACloseThatCameFirstIsToldInsideOnClose) {
  Start();
  auto client = std::make_unique<RawClient>(port_);
  client->Send(Post("/hold", "x"));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  client->Close();
  // The connection ends on its io thread; ask until that is seen.
  Once<CloseReason> closed;
  held->exchange->OnClose([&](CloseReason reason) { closed.Set(reason); });
  EXPECT_EQ(closed.Wait(), CloseReason::kClientGone);
}

TEST_F(ServerTest, AnApplicationThatForgetsTheExchangeAnswers500) {
  Start();
  EXPECT_EQ(RawClient::Fetch(port_, Post("/drop", "x")).status, 500);
}

TEST_F(ServerTest, SlowHeadsAndBodiesTimeOut) {
  options_.head_timeout = milliseconds(50);
  options_.body_timeout = milliseconds(50);
  Start();
  RawClient head(port_);
  head.Send("GET /hello HT");
  EXPECT_EQ(head.ReadResponse().status, 408);
  RawClient body(port_);
  body.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_EQ(body.ReadResponse().status, 408);
  EXPECT_TRUE(body.ReadsEof());
}

TEST_F(ServerTest, AnIdleConnectionIsClosedSilently) {
  options_.keep_alive = milliseconds(50);
  Start();
  RawClient client(port_);
  client.Send(Get("/hello"));
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_EQ(client.ReadUntil("x"), "");
}

TEST_F(ServerTest, AnAnswerThatTakesTooLongIsTheApplicationsToEnd) {
  options_.total_timeout = milliseconds(50);
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", "x"));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  held->exchange->OnClose([exchange = held->exchange.get()](CloseReason reason) {
    exchange->Respond({reason == CloseReason::kTimeout ? 504 : 500, "", {}, ""});
  });
  EXPECT_EQ(client.ReadResponse().status, 504);
}

TEST_F(ServerTest, ConnectionsOverTheLimitAreRefusedAndTheOthersServed) {
  options_.max_connections = 2;
  Start();
  RawClient first(port_), second(port_);
  first.Send(Get("/hello"));
  second.Send(Get("/hello"));
  EXPECT_EQ(first.ReadResponse().status, 200);
  EXPECT_EQ(second.ReadResponse().status, 200);
  RawClient third(port_);
  const RawResponse refused = third.ReadResponse();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  first.Send(Get("/hello"));
  EXPECT_EQ(first.ReadResponse().status, 200);
}

TEST_F(ServerTest, BodiesBeyondTheMemoryBudgetAreRefusedAndTheBudgetComesBack) {
  options_.body_memory = 100;
  Start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RawClient::Fetch(port_, Post("/echo", std::string(100, 'a'))).status, 200);
    EXPECT_EQ(RawClient::Fetch(port_, Post("/echo", std::string(101, 'a'))).status, 503);
  }
}

TEST_F(ServerTest, ABusyPortIsNamed) {
  Start();
  HttpOptions options;
  options.port = port_;
  HttpServer second(options, application_, metrics_);
  const auto port = second.Start();
  ASSERT_FALSE(port.ok());
  EXPECT_EQ(Message(port.status()), "--port " + std::to_string(port_) +
                                        ": must be free to listen on at 127.0.0.1 (Address already "
                                        "in use)");
}

TEST_F(ServerTest, AnAddressOfAnotherMachineIsNamed) {
  options_.host = "192.0.2.1";
  HttpServer server(options_, application_, metrics_);
  const auto port = server.Start();
  ASSERT_FALSE(port.ok());
  EXPECT_THAT(Message(port.status()), HasSubstr(": must be an address of this machine"));
  EXPECT_THAT(Message(port.status()), HasSubstr("192.0.2.1"));
}

TEST_F(ServerTest, ManyClientsAtOnce) {
  Start();
  std::vector<std::thread> clients;
  std::atomic<int> right = 0;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      RawClient client(port_);
      for (int i = 0; i < 100; ++i) {
        const std::string body = std::to_string(c) + "/" + std::to_string(i);
        client.Send(Post("/echo", body));
        if (client.ReadResponse().body == body) ++right;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 800);
  server_->Stop(seconds(10));
  EXPECT_THAT(metrics_.Render(),
              HasSubstr("penstock_http_responses_total{code=\"200\",route=\"test\"} 800\n"));
}

TEST_F(ServerTest, StopLetsTheAnswerInProgressEndAndClosesIdleConnections) {
  Start();
  RawClient idle(port_), busy(port_);
  idle.Send(Get("/hello"));
  EXPECT_EQ(idle.ReadResponse().status, 200);
  busy.Send(Post("/hold", "x"));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  std::thread stop([&] { server_->Stop(seconds(10)); });
  EXPECT_TRUE(idle.ReadsEof());
  held->exchange->Respond({200, "", {}, "done"});
  EXPECT_EQ(busy.ReadResponse().body, "done");
  EXPECT_TRUE(busy.ReadsEof());
  stop.join();
  EXPECT_FALSE(RawClient(port_).connected());
}

TEST_F(ServerTest, AfterTheDrainTimeTheApplicationMayEndTheAnswer) {
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", "x"));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  held->exchange->OnClose([exchange = held->exchange.get()](CloseReason reason) {
    exchange->Respond({reason == CloseReason::kStopping ? 503 : 500, "", {}, ""});
  });
  server_->Stop(milliseconds(20));
  EXPECT_EQ(client.ReadResponse().status, 503);
  // The exchange may outlive the server.
  server_.reset();
  held->exchange->Finish();
}

}  // namespace
}  // namespace penstock::router
