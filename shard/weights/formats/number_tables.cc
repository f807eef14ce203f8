#include "shard/weights/formats/number_tables.h"

#include <cmath>
#include <limits>

namespace penstock::shard {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

template <class Value>
ByteTable MakeTable(Value value) {
  ByteTable table{};
  for (unsigned i = 0; i < table.size(); ++i) table[i] = value(i);
  return table;
}

float E4m3(unsigned byte) {
  const unsigned exponent = (byte >> 3) & 15u, fraction = byte & 7u;
  if ((byte & 127u) == 127u) return kNotANumber;
  const float size =
      exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                    : std::ldexp(static_cast<float>(8 + fraction), static_cast<int>(exponent) - 10);
  return (byte & 128u) != 0 ? -size : size;
}

float E8m0(unsigned byte) {
  return byte == 255 ? kNotANumber : std::ldexp(1.0f, static_cast<int>(byte) - 127);
}

}  // namespace

const ByteTable& E4m3Table() {
  static const ByteTable table = MakeTable(E4m3);
  return table;
}

const ByteTable& E8m0Table() {
  static const ByteTable table = MakeTable(E8m0);
  return table;
}

const ByteTable& Int8Table() {
  static const ByteTable table =
      MakeTable([](unsigned byte) { return static_cast<float>(static_cast<signed char>(byte)); });
  return table;
}

const ByteTable& Offset8Table() {
  static const ByteTable table =
      MakeTable([](unsigned byte) { return static_cast<float>(byte) - 128.0f; });
  return table;
}

}  // namespace penstock::shard
