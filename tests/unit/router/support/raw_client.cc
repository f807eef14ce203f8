#include "tests/unit/router/support/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace penstock::router::testing {

RawClient::RawClient(std::uint16_t port, int receive_buffer) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) Close();
}

RawClient::~RawClient() { Close(); }

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::CloseSending() { ::shutdown(socket_, SHUT_WR); }

void RawClient::Close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool RawClient::Fill() {
  pollfd wait{socket_, POLLIN, 0};
  if (::poll(&wait, 1, static_cast<int>(patience_.count())) <= 0) return false;
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

std::string RawClient::Take(std::size_t count) {
  std::string taken = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return taken;
}

std::string RawClient::ReadUntil(std::string_view mark) {
  while (true) {
    const std::size_t at = buffer_.find(mark);
    if (at != std::string::npos) return Take(at + mark.size());
    if (!Fill()) return Take(buffer_.size());
  }
}

bool RawClient::ReadsEof() {
  while (true) {
    buffer_.clear();
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(patience_.count())) <= 0) return false;
    std::array<char, 65536> bytes;
    if (::recv(socket_, bytes.data(), bytes.size(), 0) <= 0) return true;
  }
}

bool RawClient::StaysSilent(std::chrono::milliseconds silence) {
  pollfd wait{socket_, POLLIN, 0};
  return buffer_.empty() && ::poll(&wait, 1, static_cast<int>(silence.count())) == 0;
}

RawResponse RawClient::ReadHead() {
  RawResponse response;
  const std::string head = ReadUntil("\r\n\r\n");
  if (!head.starts_with("HTTP/1.1 ")) return response;
  response.status = std::atoi(head.c_str() + 9);
  for (std::size_t begin = head.find("\r\n") + 2; begin + 2 < head.size();) {
    const std::size_t end = head.find("\r\n", begin);
    const std::string line = head.substr(begin, end - begin);
    std::string name = line.substr(0, line.find(':'));
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    response.headers[name] = line.substr(std::min(line.size(), line.find(": ") + 2));
    begin = end + 2;
  }
  return response;
}

std::optional<std::string> RawClient::ReadChunk() {
  const std::string line = ReadUntil("\r\n");
  if (!line.ends_with("\r\n")) return std::nullopt;
  const std::size_t size = std::strtoul(line.c_str(), nullptr, 16);
  while (buffer_.size() < size + 2) {
    if (!Fill()) return std::nullopt;
  }
  std::string data = Take(size);
  Take(2);
  if (size == 0) return std::nullopt;
  return data;
}

RawResponse RawClient::ReadResponse(bool head_request) {
  RawResponse response = ReadHead();
  if (response.status == 0) return response;
  if (head_request) {
    response.complete = true;
  } else if (const auto length = response.headers.find("content-length");
             length != response.headers.end()) {
    const std::size_t size = std::stoul(length->second);
    while (buffer_.size() < size && Fill()) {
    }
    response.complete = buffer_.size() >= size;
    response.body = Take(size);
  } else if (response.headers.contains("transfer-encoding")) {
    while (true) {
      const std::string line = ReadUntil("\r\n");
      if (!line.ends_with("\r\n")) return response;
      const std::size_t size = std::strtoul(line.c_str(), nullptr, 16);
      while (buffer_.size() < size + 2 && Fill()) {
      }
      if (buffer_.size() < size + 2) return response;
      response.body += Take(size);
      Take(2);
      if (size == 0) break;
      ++response.chunks;
    }
    response.complete = true;
  } else {
    while (Fill()) {
    }
    response.body = Take(buffer_.size());
    response.complete = true;
  }
  return response;
}

RawResponse RawClient::Fetch(std::uint16_t port, std::string_view request) {
  RawClient client(port);
  client.Send(request);
  return client.ReadResponse(request.starts_with("HEAD "));
}

std::string Post(std::string_view path, std::string_view body, std::string_view more_headers) {
  std::string request = "POST ";
  request.append(path).append(" HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n");
  request.append(more_headers).append("Content-Length: ").append(std::to_string(body.size()));
  request.append("\r\n\r\n").append(body);
  return request;
}

std::string Get(std::string_view path, std::string_view more_headers) {
  std::string request = "GET ";
  request.append(path).append(" HTTP/1.1\r\nHost: test\r\n").append(more_headers).append("\r\n");
  return request;
}

}  // namespace penstock::router::testing
