// The identity of one side of a TLS connection between router and shards, as PEM text.
#pragma once

#include <string>

namespace penstock {

struct TlsIdentity {
  std::string certificate;  // with its chain
  std::string key;
  std::string authority;  // signs the certificates of the other side

  bool operator==(const TlsIdentity&) const = default;
};

}  // namespace penstock
