// Lines of system messages that differ in each request, such as the date. They change the beginning
// of the prompt, so it finds no blocks of earlier ones (--drop-volatile-lines).
#pragma once

#include <string>

namespace penstock::router {

// The messages without such lines in those of the roles `system` and `developer`: lines that begin
// with `x-anthropic-billing-header:`, `Today's date` or `Current date`, in any case, also after
// `The`, and after blanks. Without any, the very same text.
std::string WithoutVolatileLines(const std::string& messages_json);

}  // namespace penstock::router
