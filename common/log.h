// Leveled logging to stderr, one line per record; the launcher merges the lines of its children.
// Thread-safe. Messages are built by the caller, so this header stays free of formatting libraries.
//
//   log::Info("listening on " + address);
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };
enum class Format : std::uint8_t { kText, kJson };

// Once at start, before other threads log. Each line names `component` (router, shard-0, …).
void Configure(std::string_view component, Level level, Format format);

void Debug(std::string_view message);
void Info(std::string_view message);
void Warn(std::string_view message);
void Error(std::string_view message);

}  // namespace penstock::log
