#include "router/http/request_id.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>

namespace penstock::router {
namespace {

// The start's random bits tell processes apart, the counter tells requests apart.
std::uint64_t StartBits() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

void AppendHex(std::string& out, std::uint64_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    out.push_back("0123456789abcdef"[(value >> shift) & 0xf]);
  }
}

}  // namespace

bool IsRequestId(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == ':';
  });
}

std::string MakeRequestId() {
  static const std::uint64_t start = StartBits();
  static std::atomic<std::uint32_t> next{0};
  std::string id;
  id.reserve(24);
  AppendHex(id, start, 16);
  AppendHex(id, next.fetch_add(1, std::memory_order_relaxed), 8);
  return id;
}

}  // namespace penstock::router
