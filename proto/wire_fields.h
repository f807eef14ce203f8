// The fields of a serialized message, one after another. Broken bytes end it: Next gives 0 and `ok`
// is false. Of the wire types it knows those that penstock.v1 uses.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace penstock::proto {

constexpr std::uint32_t VarintTag(std::uint32_t field) { return field << 3; }
constexpr std::uint32_t BytesTag(std::uint32_t field) { return field << 3 | 2; }
constexpr std::uint32_t FloatTag(std::uint32_t field) { return field << 3 | 5; }

class WireFields {
 public:
  explicit WireFields(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }

  // The tag of the next field, whose value must be taken; 0: none is left.
  std::uint32_t Next() {
    if (at_ == end_) return 0;
    if (const auto byte = static_cast<signed char>(*at_); byte > 0) {  // as nearly all are
      ++at_;
      return static_cast<std::uint32_t>(byte);
    }
    const std::uint64_t tag = Number();
    if (tag == 0 || tag > UINT32_MAX) return Break(), 0;
    return static_cast<std::uint32_t>(tag);
  }

  std::uint64_t Number() {
    if (at_ < end_ && static_cast<signed char>(*at_) >= 0) {
      return static_cast<std::uint64_t>(*at_++);
    }
    if (end_ - at_ >= 2 && static_cast<signed char>(at_[1]) >= 0) {
      const std::uint64_t low = static_cast<unsigned char>(at_[0]) & 0x7f;
      const std::uint64_t high = static_cast<unsigned char>(at_[1]);
      at_ += 2;
      return high << 7 | low;
    }
    return LongNumber();
  }
  // As protobuf does, without what is above the 32 bits.
  std::uint32_t Number32() { return static_cast<std::uint32_t>(Number()); }

  float Float() {
    float value = 0;
    if (end_ - at_ < 4) return Break(), value;
    std::memcpy(&value, at_, sizeof(value));
    at_ += 4;
    return value;
  }

  std::string_view Bytes() {
    const std::uint64_t size = Number();
    if (size > static_cast<std::uint64_t>(end_ - at_)) return Break(), std::string_view();
    const std::string_view bytes(at_, static_cast<std::size_t>(size));
    at_ += size;
    return bytes;
  }

 private:
  [[gnu::noinline]] std::uint64_t LongNumber() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ < end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return Break(), 0;
  }
  void Break() {
    ok_ = false;
    at_ = end_;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace penstock::proto
