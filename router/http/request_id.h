// Ids by which a client, the logs and GET /requests/{id} name one request.
#pragma once

#include <string>
#include <string_view>

namespace penstock::router {

// 1 to 128 of letters, digits, '.', '_', '-', ':': safe in headers, logs and paths.
bool IsRequestId(std::string_view text);

// 24 hexadecimal digits, unique in practice. Thread-safe.
std::string MakeRequestId();

}  // namespace penstock::router
