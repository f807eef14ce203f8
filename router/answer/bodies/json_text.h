// JSON strings, written in parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::router::answer {

// The characters of a JSON string, escaped, without quotes. `text` may end inside a character.
void AppendEscaped(std::string& out, std::string_view text);

void AppendUtf8(std::string& out, std::uint32_t code_point);

// The value of these hexadecimal digits; false if they are not all that.
bool ReadHex(std::string_view digits, std::uint32_t& value);

}  // namespace penstock::router::answer
