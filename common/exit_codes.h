// Exit codes of every Penstock program. docs/operations.md lists them; service managers restart on
// all but 0, 2, 3 and 7.
#pragma once

namespace penstock {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // all other errors
inline constexpr int kExitUsage = 2;    // an option is wrong
inline constexpr int kExitModel = 3;  // the model's files are missing, broken or of an unknown kind
inline constexpr int kExitMemory = 4;     // the model or its cache does not fit
inline constexpr int kExitDevice = 5;     // the device, or the link between ranks
inline constexpr int kExitShardLost = 6;  // a shard was lost while serving
inline constexpr int kExitAddress = 7;    // the address to listen on is taken or not allowed

}  // namespace penstock
