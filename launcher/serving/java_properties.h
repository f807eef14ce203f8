// The syntax of java.util.Properties, which serving.properties uses: `key=value`, `key: value` or
// `key value`. `#` and `!` begin a comment line. A backslash at the end continues a line, and
// elsewhere it escapes (\t \n \r \f \uXXXX; any other character means itself).
//
// Unlike in Java, a `#` after a blank begins a comment, since many files have comments there. Write
// `\#` for the character. Blanks at the end of a value are dropped.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

namespace penstock::launcher {

struct Property {
  std::string key;
  std::string value;
  int line = 0;  // where it begins, from 1
};

// In the order of the text. A key may occur twice. An error names the line.
absl::StatusOr<std::vector<Property>> ParseJavaProperties(std::string_view text,
                                                          const std::string& name);

}  // namespace penstock::launcher
