// A blocking TCP client that sends exactly the bytes it is given. Every wait has a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::router::testing {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  int chunks = 0;
  bool complete = false;  // the body's end was seen as its framing says
};

class RawClient {
 public:
  // `receive_buffer` > 0 sets SO_RCVBUF before connecting.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return socket_ >= 0; }
  // Returns false if the server has gone.
  bool Send(std::string_view bytes);
  void CloseSending();
  void Close();

  // Up to and with `mark`; what came before the end of the stream or the deadline otherwise.
  std::string ReadUntil(std::string_view mark);
  // Returns true if the server closed; drops what it sent before.
  bool ReadsEof();
  // Returns true if the server sends nothing within `silence`.
  bool StaysSilent(std::chrono::milliseconds silence);
  RawResponse ReadResponse(bool head_request = false);
  // Reads the head alone. The stream after it is read piece by piece.
  RawResponse ReadHead();
  // The next chunk of a chunked body; nothing at its end or when it was cut.
  std::optional<std::string> ReadChunk();

  // One request on a connection of its own.
  static RawResponse Fetch(std::uint16_t port, std::string_view request);

 private:
  bool Fill();  // more bytes into buffer_; false at the end or the deadline
  std::string Take(std::size_t count);

  int socket_ = -1;
  std::string buffer_;
  std::chrono::milliseconds patience_{10000};
};

// "POST path HTTP/1.1" with Host, a JSON content type and the body's length.
std::string Post(std::string_view path, std::string_view body, std::string_view more_headers = "");
std::string Get(std::string_view path, std::string_view more_headers = "");

}  // namespace penstock::router::testing
