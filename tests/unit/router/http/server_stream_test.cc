#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tests/unit/router/http/server_fixture.h"
#include "tests/unit/router/support/raw_client.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using testing::Get;
using ::testing::HasSubstr;
using testing::Post;
using testing::RawClient;
using testing::RawResponse;

const HttpResponse kStreamHead{200, "text/event-stream", {}, "", {}, ":\n\n"};

class ServerStreamTest : public ServerFixture {};

TEST_F(ServerStreamTest, EachEventIsSentWhenItIsWrittenAndTheConnectionStays) {
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", ""));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  held->exchange->StartStream(kStreamHead);
  EXPECT_EQ(client.ReadHead().headers.at("transfer-encoding"), "chunked");
  for (int i = 0; i < 3; ++i) {
    const std::string event = "data: " + std::to_string(i) + "\n\n";
    ASSERT_TRUE(held->exchange->Write(event));
    EXPECT_EQ(client.ReadChunk(), event);
  }
  held->exchange->Finish();
  EXPECT_EQ(client.ReadChunk(), std::nullopt);
  EXPECT_FALSE(held->exchange->Write("data: late\n\n"));
  client.Send(Get("/hello"));
  EXPECT_EQ(client.ReadResponse().body, "hello");
}

TEST_F(ServerStreamTest, Http10GetsTheEventsWithoutChunks) {
  Start();
  RawClient client(port_);
  client.Send("POST /hold HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  held->exchange->StartStream(kStreamHead);
  held->exchange->Write("data: 1\n\n");
  held->exchange->Finish();
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_EQ(response.body, "data: 1\n\n");
}

TEST_F(ServerStreamTest, PendingEventsAreSentTogether) {
  options_.send_buffer = 4096;
  Start();
  RawClient client(port_, 4096);
  client.Send(Post("/hold", ""));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  held->exchange->StartStream(kStreamHead);
  // 200 KiB in 2,000 events: more than the kernel takes, less than the stream buffer holds.
  std::string all;
  for (int i = 0; i < 2000; ++i) {
    const std::string event = "data: " + std::to_string(i) + std::string(90, '.') + "\n\n";
    ASSERT_TRUE(held->exchange->Write(event)) << i;
    all += event;
  }
  held->exchange->Finish();
  const RawResponse response = client.ReadResponse();
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.body, all);
  EXPECT_LT(response.chunks, 1000);
}

TEST_F(ServerStreamTest, AClientOverTheStreamBufferIsCutAndOnlyThatOne) {
  options_.send_buffer = 4096;
  Start();
  RawClient slow(port_, 4096), fast(port_);
  slow.Send(Post("/hold", "slow"));
  auto slow_held = application_.Next();
  fast.Send(Post("/hold", "fast"));
  auto fast_held = application_.Next();
  ASSERT_TRUE(slow_held && fast_held);
  Once<CloseReason> closed;
  slow_held->exchange->OnClose([&](CloseReason reason) { closed.Set(reason); });
  slow_held->exchange->StartStream(kStreamHead);
  fast_held->exchange->StartStream(kStreamHead);
  fast.ReadHead();
  const std::string event = "data: " + std::string(1000, 'x') + "\n\n";
  int taken = 0;
  while (taken < 2000 && slow_held->exchange->Write(event)) ++taken;
  EXPECT_LT(taken, 600);  // 256 KiB and what the kernel buffers
  EXPECT_EQ(closed.Wait(), CloseReason::kTooSlow);
  ASSERT_TRUE(fast_held->exchange->Write("data: ok\n\n"));
  EXPECT_EQ(fast.ReadChunk(), "data: ok\n\n");
  EXPECT_FALSE(slow.ReadResponse().complete);
}

TEST_F(ServerStreamTest, AClientThatReadsNothingIsCutAfterTheStallTime) {
  options_.send_buffer = 4096;
  options_.write_stall = milliseconds(100);
  Start();
  RawClient client(port_, 4096);
  client.Send(Post("/hold", ""));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  Once<CloseReason> closed;
  held->exchange->OnClose([&](CloseReason reason) { closed.Set(reason); });
  held->exchange->StartStream(kStreamHead);
  ASSERT_TRUE(held->exchange->Write(std::string(200000, 'x')));  // within the stream buffer
  EXPECT_EQ(closed.Wait(), CloseReason::kTooSlow);
}

TEST_F(ServerStreamTest, ASilentStreamGetsItsFiller) {
  options_.stream_comment = milliseconds(20);
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", ""));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  held->exchange->StartStream(kStreamHead);
  client.ReadHead();
  EXPECT_EQ(client.ReadChunk(), ":\n\n");
  EXPECT_EQ(client.ReadChunk(), ":\n\n");
  held->exchange->Write("data: 1\n\n");
  std::optional<std::string> chunk;
  do {
    chunk = client.ReadChunk();
  } while (chunk == ":\n\n");
  EXPECT_EQ(chunk, "data: 1\n\n");
}

TEST_F(ServerStreamTest, ADisconnectOfAStreamIsNoticedWithoutAWrite) {
  Start();
  auto client = std::make_unique<RawClient>(port_);
  client->Send(Post("/hold", ""));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  Once<CloseReason> closed;
  held->exchange->OnClose([&](CloseReason reason) { closed.Set(reason); });
  held->exchange->StartStream(kStreamHead);
  client->ReadHead();
  client.reset();
  EXPECT_EQ(closed.Wait(), CloseReason::kClientGone);
  EXPECT_FALSE(held->exchange->Write("data: 1\n\n"));
}

TEST_F(ServerStreamTest, AStreamThatTheApplicationDropsIsCut) {
  Start();
  RawClient client(port_);
  client.Send(Post("/hold", ""));
  auto held = application_.Next();
  ASSERT_NE(held, nullptr);
  held->exchange->StartStream(kStreamHead);
  held->exchange->Write("data: 1\n\n");
  held.reset();
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.body, "data: 1\n\n");
  EXPECT_FALSE(response.complete);
}

TEST_F(ServerStreamTest, ManyStreamsFromAnotherThread) {
  Start();
  constexpr int kStreams = 32;
  constexpr int kEvents = 200;
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::unique_ptr<TestApplication::Held>> held;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<RawClient>(port_));
    clients.back()->Send(Post("/hold", std::to_string(i)));
    held.push_back(application_.Next());
    ASSERT_NE(held.back(), nullptr);
    held.back()->exchange->StartStream(kStreamHead);
  }
  std::thread engine([&] {
    for (int e = 0; e < kEvents; ++e) {
      for (auto& h : held) h->exchange->Write("data: " + std::to_string(e) + "\n\n");
    }
    for (auto& h : held) h->exchange->Finish();
  });
  std::string expected;
  for (int e = 0; e < kEvents; ++e) expected += "data: " + std::to_string(e) + "\n\n";
  for (auto& client : clients) EXPECT_EQ(client->ReadResponse().body, expected);
  engine.join();
}

}  // namespace
}  // namespace penstock::router
