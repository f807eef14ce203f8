// Frames on the socket between a shard and its Python child: the size of the header (4 bytes), the
// size of the body (8 bytes), both little-endian, a JSON object as header, and the body.
// child/frames.py is the other end.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock::shard::transformers {

struct Frame {
  boost::json::object header;
  std::string body;
};

// Unavailable if the other end is closed. Never raises SIGPIPE.
absl::Status WriteFrame(int socket, const boost::json::object& header,
                        std::span<const std::byte> body = {});

// Unavailable at the end of the stream, also within a frame. Internal if the frame is malformed or
// its body is larger than `most_body`.
absl::StatusOr<Frame> ReadFrame(int socket, std::uint64_t most_body);

}  // namespace penstock::shard::transformers
