#include "shard/backend/transformers/frame.h"

#include <sys/socket.h>

#include <bit>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/json_parse.h"
#include "common/status.h"

namespace penstock::shard::transformers {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMostHeader = 16 << 20;
constexpr std::size_t kMaxDepth = 16;

// Without gaps, as the sizes are sent.
constexpr std::size_t kHeaderSizeBytes = sizeof(std::uint32_t);
constexpr std::size_t kSizesBytes = kHeaderSizeBytes + sizeof(std::uint64_t);

absl::Status SendAll(int socket, const void* data, std::size_t size) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, next, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return absl::UnavailableError(std::strerror(errno));
    next += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int socket, void* data, std::size_t size) {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = ::recv(socket, next, size, MSG_WAITALL);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return absl::UnavailableError(std::strerror(errno));
    if (received == 0) return absl::UnavailableError("the other end of the socket is closed");
    next += received;
    size -= static_cast<std::size_t>(received);
  }
  return absl::OkStatus();
}

absl::Status TooLarge(const char* part, std::uint64_t size, std::uint64_t most) {
  return absl::InternalError("a frame with a " + std::string(part) + " of " + std::to_string(size) +
                             " bytes; at most " + std::to_string(most) + " are expected");
}

}  // namespace

absl::Status WriteFrame(int socket, const boost::json::object& header,
                        std::span<const std::byte> body) {
  const std::string text = boost::json::serialize(header);
  const auto header_size = static_cast<std::uint32_t>(text.size());
  const std::uint64_t body_size = body.size();
  std::string start(kSizesBytes, '\0');
  std::memcpy(start.data(), &header_size, sizeof header_size);
  std::memcpy(start.data() + kHeaderSizeBytes, &body_size, sizeof body_size);
  start += text;
  PENSTOCK_RETURN_IF_ERROR(SendAll(socket, start.data(), start.size()));
  return SendAll(socket, body.data(), body.size());
}

absl::StatusOr<Frame> ReadFrame(int socket, std::uint64_t most_body) {
  char sizes[kSizesBytes];
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket, sizes, sizeof sizes));
  std::uint32_t header_size = 0;
  std::uint64_t body_size = 0;
  std::memcpy(&header_size, sizes, sizeof header_size);
  std::memcpy(&body_size, sizes + kHeaderSizeBytes, sizeof body_size);
  if (header_size > kMostHeader) return TooLarge("header", header_size, kMostHeader);
  if (body_size > most_body) return TooLarge("body", body_size, most_body);
  std::string text(header_size, '\0');
  Frame frame;
  frame.body.resize(body_size);
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket, text.data(), text.size()));
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket, frame.body.data(), frame.body.size()));
  auto header = ParseJson(text, kMaxDepth);
  if (!header.ok()) return absl::InternalError("a frame's header " + Message(header.status()));
  if (!header->is_object()) return absl::InternalError("a frame's header is no JSON object");
  frame.header = std::move(header->as_object());
  return frame;
}

}  // namespace penstock::shard::transformers
