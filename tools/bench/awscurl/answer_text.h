// The generated text in an answer of DJL's formatters. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::bench::awscurl {

// The texts to count, as awscurl does: a json answer's texts, all lines of jsonlines joined, each
// event of a stream. nullopt if the body does not match its type.
std::optional<std::vector<std::string>> AnswerTexts(std::string_view content_type,
                                                    std::string_view body);

std::size_t CountWords(std::string_view text);

}  // namespace penstock::bench::awscurl
