// What one side of a mutual TLS connection between router and shards needs, as PEM text.
#pragma once

#include <string>

namespace penstock {

struct TlsIdentity {
  std::string certificate;  // its own, with the chain behind it
  std::string key;
  std::string authority;  // whose certificates it accepts of the other side
};

}  // namespace penstock
