#include "router/json/plain_float.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace penstock::router::json {
namespace {

constexpr int kFractionBits = 23;
constexpr std::uint32_t kLeastMantissa = 1u << kFractionBits;
constexpr int kBias = 127 + kFractionBits;
// The unit of the last place is 2^-ulp.
constexpr int kLeastUlp = 5;
constexpr int kMostUlp = 36;

constexpr std::array<std::uint64_t, 12> MakePowers() {
  std::array<std::uint64_t, 12> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = 10 * powers[i - 1];
  return powers;
}
constexpr std::array<std::uint64_t, 12> kPowers = MakePowers();

struct Decimal {
  std::uint32_t digits;  // of 2^24 * 10 at most
  int decimals;          // thereof behind the point
};

// Of mantissa * 2^-ulp; none where the method does not tell. The middles to the neighbours are odd
// multiples of half or a quarter of 2^-ulp, and so never decimals of as few digits as are looked at
// here: nothing lies on a bound.
std::optional<Decimal> Shortest(std::uint32_t mantissa, int ulp) {
  const int decimals = (ulp * 1233 + 4095) >> 12;  // ceil(ulp * log10(2)): 10^-decimals <= 2^-ulp
  const std::uint64_t power = kPowers[static_cast<std::size_t>(decimals)];
  const std::uint64_t exact = 2 * std::uint64_t{mantissa} * power;
  const int shift = ulp + 1;
  // A power of two is nearer to the number below it.
  const std::uint64_t below = mantissa == kLeastMantissa ? power / 2 : power;
  // One decimal less: one number at most lies between the middles.
  const std::uint64_t coarse = ((exact + power) >> shift) / 10;
  if (((10 * coarse) << shift) > exact - below) {
    return Decimal{static_cast<std::uint32_t>(coarse), decimals - 1};
  }
  if (mantissa == kLeastMantissa) return std::nullopt;
  const std::uint64_t half = std::uint64_t{1} << ulp;
  std::uint64_t nearest = (exact + half) >> shift;
  if ((nearest << shift) == exact + half) nearest &= ~std::uint64_t{1};  // a tie goes to even
  return Decimal{static_cast<std::uint32_t>(nearest), decimals};
}

}  // namespace

char* WritePlainFloat(char* at, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const int ulp = kBias - static_cast<int>((bits >> kFractionBits) & 0xff);
  if (ulp < kLeastUlp || ulp > kMostUlp) return nullptr;
  const auto shortest = Shortest((bits & (kLeastMantissa - 1)) | kLeastMantissa, ulp);
  if (!shortest) return nullptr;
  Decimal number = *shortest;
  if (number.decimals > 4 && number.digits % 10'000 == 0) {  // few digits: most are zeros
    number.digits /= 10'000;
    number.decimals -= 4;
  }
  while (number.decimals > 1 && number.digits % 10 == 0) {
    number.digits /= 10;
    --number.decimals;
  }
  std::array<char, 2 * kPlainFloatBytes> text;  // the second half: a copy may read beyond the end
  char* const end = text.data() + kPlainFloatBytes;
  char* first = end;
  for (int left = number.decimals; left > 0; --left, number.digits /= 10) {
    *--first = static_cast<char>('0' + number.digits % 10);
  }
  *--first = '.';
  do {
    *--first = static_cast<char>('0' + number.digits % 10);
    number.digits /= 10;
  } while (number.digits > 0);
  if (bits >> 31 != 0) *--first = '-';
  std::memcpy(at, first, kPlainFloatBytes);
  return at + (end - first);
}

bool AppendPlainFloat(std::string& out, float value) {
  std::array<char, kPlainFloatBytes> text;
  char* const end = WritePlainFloat(text.data(), value);
  if (end == nullptr) return false;
  out.append(text.data(), end);
  return true;
}

}  // namespace penstock::router::json
