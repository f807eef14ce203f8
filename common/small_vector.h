// A vector whose first N elements live inside it: a row of a result or an event holds one token
// nearly always, and thousands of them pass per second.
//
// The interface is std::vector's as far as it goes. Moving it may move its elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

namespace penstock {

template <class T, std::size_t N>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  SmallVector(const SmallVector& other) { assign(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { Take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    clear();
    Free();
    Take(other);
    return *this;
  }
  ~SmallVector() {
    clear();
    Free();
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    clear();
    reserve(static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) push_back(*first);
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) reserve(2 * capacity_);
    T* const place = std::construct_at(data_ + size_, std::forward<Arguments>(arguments)...);
    ++size_;
    return *place;
  }
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* const data = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data_, size_, data);
    std::destroy_n(data_, size_);
    Free();
    data_ = data;
    capacity_ = capacity;
  }
  void resize(std::size_t size) {
    reserve(size);
    while (size_ < size) emplace_back();
    while (size_ > size) std::destroy_at(data_ + --size_);
  }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* Inline() { return std::launder(reinterpret_cast<T*>(inline_)); }
  bool IsInline() const { return data_ == reinterpret_cast<const T*>(inline_); }

  // Gives back what was allocated; the elements are gone already.
  void Free() {
    if (IsInline()) return;
    std::allocator<T>().deallocate(data_, capacity_);
    data_ = Inline();
    capacity_ = N;
  }
  // This one is empty and inline.
  void Take(SmallVector& other) {
    if (other.IsInline()) {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.Inline());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
    }
  }

  alignas(T) std::byte inline_[N * sizeof(T)];
  T* data_ = Inline();
  std::size_t capacity_ = N;
  std::size_t size_ = 0;
};

}  // namespace penstock
