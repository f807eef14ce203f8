// The regular expression of an object's members if none is required: any of them, in order, with
// commas between them.
//
// `members`: their expressions; `between`: that of a comma. nullopt: the result would have more
// than `most` bytes. Callers bound the sum of the members: a result that is refused may be built
// first, and has about 1 + log2(n) times as many bytes.
//
// TGI writes one alternative for each first member, with the whole list in each: n * n members, 380
// KB for 80 texts. Here the list is halved. It begins in the first half, and any of the second half
// may follow, or it begins in the second half. That is the same language with about n * log2(n)
// members. Some expressions depend on the text around them, such as alternatives without
// parentheses. Lists with such members are written in TGI's form, so that they mean the same.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::router::tgi {

std::string Concat(std::initializer_list<std::string_view> parts);

// At least one of them.
std::optional<std::string> AnyInOrder(const std::vector<std::string>& members,
                                      const std::string& between, std::size_t most);

// After another member: each with a comma before it, or none of them.
std::optional<std::string> AnyAfter(const std::vector<std::string>& members,
                                    const std::string& between, std::size_t most);

}  // namespace penstock::router::tgi
