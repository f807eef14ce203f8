#include "router/http/request_id.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

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

}  // namespace

bool IsRequestId(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("._-:").find(c) != std::string_view::npos;
  });
}

std::string MakeRequestId() {
  static const std::uint64_t start = StartBits();
  static std::atomic<std::uint32_t> next{0};
  return absl::StrCat(absl::Hex(start, absl::kZeroPad16),
                      absl::Hex(next.fetch_add(1, std::memory_order_relaxed), absl::kZeroPad8));
}

}  // namespace penstock::router
