#include "router/http/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using State = RequestReader::State;

struct Read {
  State state = State::kNeedMore;
  std::string method, path, query, body, rest;
  HttpFailure failure;
};

// Feeds `bytes` in pieces of `step` bytes, as a slow network would.
Read Feed(const std::string& bytes, std::size_t step, const HttpLimits& limits = {}) {
  RequestReader reader(limits);
  Read read;
  std::string in;
  bool head_done = false;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    in += bytes.substr(at, step);
    if (!head_done) read.state = reader.ReadHead(in);
    if (read.state == State::kReady) head_done = true;
    if (head_done) read.state = reader.ReadBody(in);
    if (read.state != State::kNeedMore) {
      in += bytes.substr(std::min(bytes.size(), at + step));
      break;
    }
  }
  read.failure = reader.failure();
  read.method = reader.head().method;
  read.path = reader.head().path;
  read.query = reader.head().query;
  if (read.state == State::kReady) read.body = reader.TakeBody();
  read.rest = in;
  return read;
}

// RFC 9112 section 3.2.2: what a proxy sends. Host says the same, so it can be read in one way
// only.
TEST(RequestReader, ATargetInAbsoluteFormIsItsPath) {
  const auto read = [](const std::string& target) {
    return Feed("GET " + target + " HTTP/1.1\r\nHost: A.example:3000\r\n\r\n", 7);
  };
  EXPECT_EQ(read("http://a.example:3000/info?x=/y").path, "/info");
  EXPECT_EQ(read("http://a.example:3000/info?x=/y").query, "x=/y");
  EXPECT_EQ(read("HTTPS://a.example:3000/").path, "/");
  EXPECT_EQ(read("http://a.example:3000").path, "/");
  EXPECT_EQ(read("http://a.example/info").state, State::kFailed);
  EXPECT_EQ(read("http://a.example:3000?x").state, State::kFailed);
}

// A client with another protocol gets an answer at once.
TEST(RequestReader, OtherProtocolsAreRefusedAtOnce) {
  const Read bare = Feed("GET /health HTTP/1.1\nHost: x\n\n", 1);
  EXPECT_EQ(bare.failure.status, 400);
  EXPECT_EQ(bare.failure.message, "a line must end with CR LF");
  EXPECT_EQ(Feed("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1).failure.status, 505);
}

TEST(RequestReader, ReadsTheSameRequestHoweverItIsCut) {
  const std::string plain =
      "POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n";
  const std::string chunked =
      "POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "2;ext=1\r\nhe\r\n003\r\nllo\r\n0\r\nTrailer: t\r\n\r\nGET / HTTP/1.1\r\n";
  for (const std::string& bytes : {plain, chunked}) {
    for (std::size_t step = 1; step <= bytes.size(); ++step) {
      const Read read = Feed(bytes, step);
      ASSERT_EQ(read.state, State::kReady) << step << " " << read.failure.message;
      EXPECT_EQ(read.method, "POST");
      EXPECT_EQ(read.path, "/a/b");
      EXPECT_EQ(read.query, "c=d");
      EXPECT_EQ(read.body, "hello");
      EXPECT_EQ(read.rest, "GET / HTTP/1.1\r\n");
    }
  }
}

// A last chunk in pieces trips an assertion of the parser where assertions are on.
TEST(RequestReader, ReadsAnEmptyChunkedBodyByteByByte) {
  const Read read =
      Feed("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1);
  EXPECT_EQ(read.state, State::kReady);
  EXPECT_EQ(read.body, "");
}

TEST(RequestReader, SkipsEmptyLinesBetweenRequestsHoweverTheyAreCut) {
  for (const std::size_t step : {1, 2, 3, 100}) {
    const Read read = Feed("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", step);
    EXPECT_EQ(read.state, State::kReady) << step << " " << read.failure.message;
  }
}

struct Attack {
  const char* name;
  std::string bytes;
  int status;
};

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<Attack> Attacks() {
  using namespace std::string_literals;  // one literal holds a NUL
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      {"te and cl", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"te xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n", 400},
      {"te list", post + "Transfer-Encoding: chunked, identity\r\n\r\n", 400},
      {"te identity", post + "Transfer-Encoding: identity\r\n\r\n", 400},
      {"te twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"te on 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"te tab", post + "Transfer-Encoding:\tchunked\v\r\n\r\n", 400},
      {"cl repeated", post + "Content-Length: 4\r\nContent-Length: 4\r\n\r\n", 400},
      {"cl list", post + "Content-Length: 4, 4\r\n\r\n", 400},
      {"cl plus", post + "Content-Length: +4\r\n\r\n", 400},
      {"cl hex", post + "Content-Length: 0x4\r\n\r\n", 400},
      {"cl empty", post + "Content-Length: \r\n\r\n", 400},
      {"cl overflow", post + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"host with path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"folding", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400},
      {"space before colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"bare lf", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {"bare lf in a header", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400},
      {"nul in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s, 400},
      {"cr in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400},
      {"absolute form of another host", "GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"absolute form with a user", "GET http://b@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"absolute form without a host", "GET http:///x HTTP/1.1\r\nHost: \r\n\r\n", 400},
      {"another scheme", "GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"fragment", "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"http 2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"http 1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"tls hello", "\x16\x03\x01\x02", 400},
      {"two authorizations",
       "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400},
      {"compressed", post + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\n", 415},
      {"long request line", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
      {"endless request line", "GET /" + std::string(9000, 'a'), 414},
      {"many headers", "GET / HTTP/1.1\r\nHost: a\r\n" + Repeat("a:\r\n", 100) + "\r\n", 431},
      {"large head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(17000, 'a') + "\r\n\r\n",
       431},
      {"endless head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(17000, 'a'), 431},
      {"large body", post + "Content-Length: 1001\r\n\r\n", 413},
      {"large chunk", chunked + "3e9\r\n", 413},
      {"chunks over the limit", chunked + "3e0\r\n" + std::string(992, 'a') + "\r\n9\r\n", 413},
      {"negative chunk", chunked + "-1\r\n", 400},
      {"17 digit chunk", chunked + "10000000000000000\r\na\r\n", 400},
      {"chunk without its end", chunked + "1\r\nab\r\n0\r\n\r\n", 400},
      {"many chunks", chunked + Repeat("1\r\na\r\n", 60), 400},
      {"tiny chunks", chunked + Repeat("2\r\nab\r\n", 20), 400},
      {"chunk extensions", chunked + Repeat("4;" + std::string(90, 'x') + "\r\nabcd\r\n", 9), 400},
      {"endless chunk extension", chunked + "1;" + std::string(20000, 'x'), 400},
      {"content-length trailer", chunked + "0\r\nContent-Length: 3\r\n\r\n", 400},
  };
}

HttpLimits SmallLimits() {
  HttpLimits limits;
  limits.body_bytes = 1000;
  limits.chunks = 50;
  limits.free_chunks = 10;
  limits.average_chunk = 3;
  limits.chunk_extensions = 700;
  return limits;
}

TEST(RequestReader, RefusesAmbiguousAndOversizedRequestsHoweverTheyAreCut) {
  for (const Attack& attack : Attacks()) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, attack.bytes.size()}) {
      const Read read = Feed(attack.bytes, step, SmallLimits());
      EXPECT_EQ(read.state, State::kFailed) << attack.name << " in steps of " << step;
      EXPECT_EQ(read.failure.status, attack.status) << attack.name << read.failure.message;
      EXPECT_EQ(read.failure.message.find('\n'), std::string::npos);
    }
  }
}

TEST(RequestReader, AcceptsWhatIsWithinTheLimits) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::vector<std::string> requests = {
      "GET / HTTP/1.0\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n",
      "GET / HTTP/1.1\r\nhost:\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\n" + Repeat("a:\r\n", 99) + "\r\n",
      post + "Content-Length: 1000\r\n\r\n" + std::string(1000, 'a'),
      post + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + std::string(1000, 'a') + "\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked\r\n\r\n" + Repeat("3\r\nabc\r\n", 49) + "0\r\n\r\n",
      post + "Content-Encoding: identity\r\nExpect: 100-Continue\r\nContent-Length: 0\r\n\r\n",
      post + "Expect: magic\r\nContent-Length: 0\r\n\r\n",
  };
  for (const std::string& bytes : requests) {
    const Read read = Feed(bytes, 13, SmallLimits());
    EXPECT_EQ(read.state, State::kReady) << bytes.substr(0, 80) << read.failure.message;
  }
}

// Whatever the bytes, the reader neither crashes nor takes a request for something else than the
// same bytes fed at once.
TEST(RequestReader, MutatedRequestsReadTheSameInPiecesAndAtOnce) {
  const std::uint64_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::string base =
      "POST /x?y HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;e\r\nde\r\n0\r\nT: u\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string alphabet = "\r\n :;0123456789abcdefCONTENTlength\t,\x80";
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = base;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % bytes.size();
      const char c = alphabet[random() % alphabet.size()];
      if (random() % 3 == 0) {
        bytes.erase(at, 1);
      } else if (random() % 2 == 0) {
        bytes.insert(at, 1, c);
      } else {
        bytes[at] = c;
      }
    }
    const Read whole = Feed(bytes, bytes.size());
    const Read pieces = Feed(bytes, 1 + random() % 5);
    ASSERT_EQ(whole.state, pieces.state) << "seed " << seed << "\n" << bytes;
    ASSERT_EQ(whole.body, pieces.body) << "seed " << seed << "\n" << bytes;
    if (whole.state == State::kReady) {
      ASSERT_EQ(whole.rest, pieces.rest) << "seed " << seed << "\n" << bytes;
    }
  }
}

TEST(RequestReader, ATooLargeBodyIsRefusedWithItsSizeAndTheLimit) {
  const Read read =
      Feed("POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n", 1000);
  EXPECT_EQ(read.failure.message, "the body must have at most 16777216 bytes. Given: 100000000");
  EXPECT_EQ(read.path, "/generate");  // so that the answer can speak the route's dialect
}

}  // namespace
}  // namespace penstock::router
