// Encoding of the input log: variable-length integers, 32-bit floats, and lengths before strings
// and lists. Writer and reader use one list of fields (input_log_fields.h), so they always agree.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/ids.h"
#include "common/time.h"

namespace penstock::scheduler {

// Specialised for each struct: `static void Each(auto& archive, auto& value)` passes all fields.
template <class T>
struct Fields;

#define PENSTOCK_FIELDS(Type, ...)           \
  template <>                                \
  struct Fields<Type> {                      \
    template <class Archive, class Value>    \
    static void Each(Archive& a, Value& v) { \
      __VA_ARGS__;                           \
    }                                        \
  }

// The same for an aggregate whose fields all count: a field that is left out does not compile.
#define PENSTOCK_ALL_FIELDS(Type, ...)       \
  template <>                                \
  struct Fields<Type> {                      \
    template <class Archive, class Value>    \
    static void Each(Archive& a, Value& v) { \
      auto& [__VA_ARGS__] = v;               \
      a(__VA_ARGS__);                        \
    }                                        \
  }

// std::vector and absl::InlinedVector.
template <class T>
concept IsList = requires(T list) {
  list.emplace_back();
};

class ArchiveWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

  void PutVarint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

 private:
  template <class T>
  void Put(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      PutVarint(static_cast<std::uint64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      static_assert(sizeof(T) == 4);
      const auto bits = std::bit_cast<std::uint32_t>(value);
      for (int shift = 0; shift < 32; shift += 8)
        bytes_.push_back(static_cast<char>(bits >> shift));
    } else if constexpr (std::is_signed_v<T>) {
      const auto wide = static_cast<std::int64_t>(value);
      PutVarint((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
    } else if constexpr (std::is_integral_v<T>) {
      PutVarint(value);
    } else {
      Fields<T>::Each(*this, value);
    }
  }
  template <class Tag, class Rep>
  void Put(const Id<Tag, Rep>& id) {
    Put(id.value());
  }
  void Put(const Time& time) { Put(time.time_since_epoch().count()); }
  void Put(const Duration& duration) { Put(duration.count()); }
  void Put(const std::string& text) {
    PutVarint(text.size());
    bytes_ += text;
  }
  template <IsList List>
  void Put(const List& list) {
    PutVarint(list.size());
    for (const auto& item : list) Put(item);
  }
  template <class T>
  void Put(const std::optional<T>& maybe) {
    PutVarint(maybe.has_value());
    if (maybe) Put(*maybe);
  }
  template <class... T>
  void Put(const std::variant<T...>& choice) {
    PutVarint(choice.index());
    std::visit([this](const auto& value) { this->Put(value); }, choice);
  }

  std::string bytes_;
};

// After an error ok() is false, and further values do not change.
class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }

  std::uint64_t GetVarint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = GetBytes(1);
      if (byte.empty()) return 0;
      const auto bits = static_cast<unsigned char>(byte[0]);
      value |= std::uint64_t{bits & 0x7fu} << shift;
      if (bits < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }

  // Empty if fewer are left.
  std::string_view GetBytes(std::uint64_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

 private:
  template <class T>
  void Get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(GetVarint());
    } else if constexpr (std::is_floating_point_v<T>) {
      std::uint32_t bits = 0;
      const std::string_view bytes = GetBytes(4);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bits |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
      }
      value = std::bit_cast<float>(bits);
    } else if constexpr (std::is_signed_v<T>) {
      const std::uint64_t zigzag = GetVarint();
      value = static_cast<T>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(GetVarint());
    } else {
      Fields<T>::Each(*this, value);
    }
  }
  template <class Tag, class Rep>
  void Get(Id<Tag, Rep>& id) {
    Rep value = 0;
    Get(value);
    id = Id<Tag, Rep>(value);
  }
  void Get(Time& time) {
    Duration since{0};
    Get(since);
    time = Time(since);
  }
  void Get(Duration& duration) {
    Duration::rep count = 0;
    Get(count);
    duration = Duration(count);
  }
  void Get(std::string& text) { text = GetBytes(GetVarint()); }
  template <IsList List>
  void Get(List& list) {
    const std::uint64_t size = GetVarint();
    // An item has at least one byte, so a damaged length cannot allocate more than the input.
    if (size > rest_.size()) ok_ = false;
    list.clear();
    for (std::uint64_t i = 0; ok_ && i < size; ++i) Get(list.emplace_back());
  }
  template <class T>
  void Get(std::optional<T>& maybe) {
    maybe.reset();
    if (GetVarint() != 0 && ok_) Get(maybe.emplace());
  }
  template <class... T>
  void Get(std::variant<T...>& choice) {
    const std::uint64_t index = GetVarint();
    if (index >= sizeof...(T)) ok_ = false;
    if (ok_) GetAlternative(choice, index, std::index_sequence_for<T...>{});
  }
  template <class V, std::size_t... I>
  void GetAlternative(V& choice, std::uint64_t index, std::index_sequence<I...>) {
    ((I == index ? Get(choice.template emplace<I>()) : void()), ...);
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace penstock::scheduler
