// The members of an object of which none is required, as a regular expression: any of them, at
// least one, in their order, with commas between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace penstock::router::tgi {

// `members`: their expressions; `between`: that of a comma. Nothing where it would be longer than
// `most` bytes.
//
// TGI writes one alternative for each first member, the whole list in each: n * n members, 421 KB
// for 80 texts. Here the list is halved: it begins in the first half, and any of the second half
// may follow, or it begins in the second half. That is the same language in n * log2(n) / 2
// members. Members that do not stand by themselves, as one of any type, whose alternatives have no
// parentheses in TGI, keep TGI's form, which decides what they mean.
std::optional<std::string> AnyInOrder(const std::vector<std::string>& members,
                                      const std::string& between, std::size_t most);

}  // namespace penstock::router::tgi
