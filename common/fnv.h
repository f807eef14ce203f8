// FNV-1a of 64 bits: the same on every machine, whatever compiler built the program.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock {

inline constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325u;

// Continues the hash of what came before.
constexpr std::uint64_t Fnv1a(std::string_view bytes, std::uint64_t hash = kFnvStart) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace penstock
