// Strong identifiers. Two ids of different kinds never convert into each other.
//
// A token id stays a plain int32: it is the element of long arrays that go to tokenizers, protobuf
// and tensors unchanged.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace penstock {

template <class Tag, class Rep>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

using RequestId =
    Id<struct RequestTag, std::uint64_t>;  // one per client request, given by the router
using SequenceId =
    Id<struct SequenceTag, std::uint64_t>;           // one per (re)start of a request on a group
using SlotId = Id<struct SlotTag, std::uint32_t>;    // row of shard state that a sequence occupies
using BlockId = Id<struct BlockTag, std::uint32_t>;  // KV block of a group, 0 … blocks-1
using StepId = Id<struct StepTag, std::uint64_t>;    // engine step of a group, from 1, gapless
using GroupId = Id<struct GroupTag, std::uint32_t>;  // replica group (one set of TP ranks)
using Epoch = Id<struct EpochTag,
                 std::uint64_t>;  // one per formation of a group; shards refuse plans of another

using TokenId = std::int32_t;

}  // namespace penstock

template <class Tag, class Rep>
struct std::hash<penstock::Id<Tag, Rep>> {
  std::size_t operator()(penstock::Id<Tag, Rep> id) const { return std::hash<Rep>{}(id.value()); }
};
