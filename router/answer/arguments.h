// The arguments of a call as a JSON object, for interfaces that have no other form.
#pragma once

#include <string>
#include <string_view>

namespace penstock::router::answer {

// The same text if it is a JSON object; {} if it is empty. Any other text becomes
// {"INVALID_JSON": TEXT}, which is how Anthropic's clients are told to send it back.
std::string ArgumentsObject(std::string_view arguments);

}  // namespace penstock::router::answer
