// The bytes of a connection: heads and bodies, whole and in pieces, and the answers to them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "router/http/request_reader.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/targets/exchanges.h"

namespace penstock::fuzz {
namespace {

using router::HttpLimits;
using router::RequestReader;
using State = RequestReader::State;

// Small, so that an input reaches them.
HttpLimits Limits() {
  HttpLimits limits;
  limits.request_line = 256;
  limits.head_bytes = 1024;
  limits.head_fields = 16;
  limits.body_bytes = 1024;
  limits.chunks = 32;
  limits.free_chunks = 8;
  limits.average_chunk = 4;
  limits.chunk_extensions = 64;
  return limits;
}

struct Request {
  router::RequestHead head;
  std::string body;
  router::HttpFailure failure;

  bool operator==(const Request& other) const {
    return head.method == other.head.method && head.path == other.head.path &&
           head.query == other.head.query && body == other.body &&
           failure.status == other.failure.status;
  }
};

// The state of one connection.
class ClientBytes {
 public:
  // False once a request has failed.
  bool Take(std::string_view piece) {
    in_ += piece;
    while (Step()) {
    }
    return !failed_;
  }
  const std::vector<Request>& requests() const { return requests_; }

 private:
  // Whether a request ended, so that the bytes left may be another one.
  bool Step() {
    if (failed_) return false;
    if (!head_done_) {
      const State state = reader_.ReadHead(in_);
      if (state == State::kReady && !reader_.BodyFits()) return Fail();
      if (state != State::kReady) return state == State::kFailed ? Fail() : false;
      head_done_ = true;
    }
    const State state = reader_.ReadBody(in_);
    if (state != State::kReady) return state == State::kFailed ? Fail() : false;
    requests_.push_back({reader_.head(), reader_.TakeBody(), {}});
    reader_.Reset();
    head_done_ = false;
    return !in_.empty();
  }
  bool Fail() {
    Require(reader_.failure().status >= 400, "a failure has a status");
    requests_.push_back({reader_.head(), "", reader_.failure()});
    failed_ = true;
    return false;
  }

  RequestReader reader_{Limits()};
  std::string in_;
  bool head_done_ = false;
  bool failed_ = false;
  std::vector<Request> requests_;
};

std::vector<Request> ReadInPieces(std::string_view bytes, std::size_t step) {
  ClientBytes connection;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    if (!connection.Take(bytes.substr(at, step))) break;
  }
  return connection.requests();
}

}  // namespace

void ReadHttp(std::string_view bytes) {
  const std::vector<Request> whole = ReadInPieces(bytes, std::max<std::size_t>(bytes.size(), 1));
  const std::vector<Request> pieces = ReadInPieces(bytes, 1 + bytes.size() % 7);
  Require(whole == pieces, "a request does not depend on how its bytes arrive");
  Exchanges exchanges(Server::kText);
  for (const Request& request : whole) {
    if (request.failure.status != 0) {
      exchanges.Refuse(request.head, request.failure);
    } else {
      exchanges.Answer(request.head, request.body, request.body.size());
    }
  }
}

}  // namespace penstock::fuzz
