// The syntax of java.util.Properties, which serving.properties is written in: `key=value`,
// `key: value` or `key value`; `#` and `!` begin a comment line; a backslash at the end continues a
// line, elsewhere it escapes (\t \n \r \f \uXXXX, any other character stands for itself).
//
// One thing beyond Java: a `#` behind a blank ends a value, since files are written with comments
// there, whose authors believe that they are comments. `\#` stands for a real one. Blanks at the
// end of a value do not count.
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

// In the order of the text; a key may come again. The error names the line.
absl::StatusOr<std::vector<Property>> ParseJavaProperties(std::string_view text,
                                                          const std::string& name);

}  // namespace penstock::launcher
