#include "tests/unit/shard/backend/cuda/tensor_emulator.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kWarp = 32;

unsigned Lane() { return emulator::Now().thread.x % kWarp; }

float Half(std::uint32_t word, unsigned index) {
  return ToFloat(Bf16{static_cast<std::uint16_t>(word >> (16 * index))});
}

struct Operands {
  std::array<std::uint32_t, 4> a;
  std::array<std::uint32_t, 2> b;
};

const Operands& OperandsOf(unsigned lane) {
  return *static_cast<const Operands*>(emulator::OfferOf(lane));
}

// Row `row` of A and column `column` of B, from the lanes that hold them.
std::array<float, 16> RowOfA(unsigned row) {
  std::array<float, 16> values;
  for (unsigned k = 0; k < 16; ++k) {
    const auto& a = OperandsOf(row % 8 * 4 + k % 8 / 2).a;
    values[k] = Half(a[row / 8 + k / 8 * 2], k % 2);
  }
  return values;
}

std::array<float, 16> ColumnOfB(unsigned column) {
  std::array<float, 16> values;
  for (unsigned k = 0; k < 16; ++k) {
    values[k] = Half(OperandsOf(column * 4 + k % 8 / 2).b[k / 8], k % 2);
  }
  return values;
}

const Bf16* RowOfMatrix(unsigned matrix, unsigned row) {
  return *static_cast<const Bf16* const*>(emulator::OfferOf(matrix * 8 + row));
}

void CheckAligned(const void* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 == 0) return;
  std::fprintf(stderr, "emulator: 16 bytes are moved at an address that is no multiple of 16\n");
  std::abort();
}

}  // namespace

void MultiplyAdd(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  const Operands mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  emulator::MeetInWarp(&mine, sizeof mine);
  const unsigned row = Lane() / 4;
  const unsigned column = Lane() % 4 * 2;
  const std::array rows = {RowOfA(row), RowOfA(row + 8)};
  const std::array columns = {ColumnOfB(column), ColumnOfB(column + 1)};
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned k = 0; k < 16; ++k) c[i] += rows[i / 2][k] * columns[i % 2][k];
  }
}

void LoadMatrices(std::uint32_t (&out)[4], const Bf16* row) {
  CheckAligned(row);
  emulator::MeetInWarp(&row, sizeof row);
  for (unsigned i = 0; i < 4; ++i) {
    const Bf16* from = RowOfMatrix(i, Lane() / 4) + Lane() % 4 * 2;
    out[i] = from[0].bits | std::uint32_t{from[1].bits} << 16;
  }
}

void LoadTransposed(std::uint32_t (&out)[4], const Bf16* row) {
  CheckAligned(row);
  emulator::MeetInWarp(&row, sizeof row);
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t low = RowOfMatrix(i, Lane() % 4 * 2)[Lane() / 4].bits;
    const std::uint32_t high = RowOfMatrix(i, Lane() % 4 * 2 + 1)[Lane() / 4].bits;
    out[i] = low | high << 16;
  }
}

void CopyAsync(Bf16* shared, const Bf16* global, bool there) {
  CheckAligned(shared);
  CheckAligned(global);
  emulator::BeginCopy(shared, there ? global : nullptr);
}

void EndCopyGroup() { emulator::EndCopies(); }

std::uint32_t PickBytes(std::uint32_t low, std::uint32_t high, std::uint32_t choice) {
  const std::uint64_t all = std::uint64_t{high} << 32 | low;
  std::uint32_t picked = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t nibble = choice >> 4 * i & 15;
    std::uint32_t byte = static_cast<std::uint32_t>(all >> 8 * (nibble & 7)) & 0xff;
    if (nibble >= 8) byte = byte >= 0x80 ? 0xff : 0;
    picked |= byte << 8 * i;
  }
  return picked;
}

namespace {

template <class Combine>
std::uint32_t OfPairs(std::uint32_t a, std::uint32_t b, Combine combine) {
  const auto low = [](std::uint32_t pair) {
    return ToFloat(Bf16{static_cast<std::uint16_t>(pair)});
  };
  return PackPair(combine(low(a), low(b)), combine(low(a >> 16), low(b >> 16)));
}

}  // namespace

std::uint32_t MultiplyPairs(std::uint32_t a, std::uint32_t b) {
  return OfPairs(a, b, [](float x, float y) { return x * y; });
}

std::uint32_t SubtractPairs(std::uint32_t a, std::uint32_t b) {
  return OfPairs(a, b, [](float x, float y) { return x - y; });
}

void emulated::WaitForCopies(std::size_t open) { emulator::FinishCopies(open); }

}  // namespace penstock::shard::cuda
