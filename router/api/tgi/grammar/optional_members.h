// The members of an object of which none is required, as a regular expression: any of them in their
// order with commas between them.
//
// `members`: their expressions; `between`: that of a comma. Nothing where it would be longer than
// `most` bytes.
//
// TGI writes one alternative for each first member, the whole list in each: n * n members, 380 KB
// for 80 texts. Here the list is halved: it begins in the first half, and any of the second half
// may follow, or it begins in the second half. What may follow comes in blocks, see there. That is
// the same language in some n * log2(n) members. Members that do not stand by themselves, as one of
// any type, whose alternatives have no parentheses in TGI, keep TGI's form, which decides what they
// mean.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace penstock::router::tgi {

// At least one of them.
std::optional<std::string> AnyInOrder(const std::vector<std::string>& members,
                                      const std::string& between, std::size_t most);

// Behind another member: each with a comma in front, or none.
std::optional<std::string> AnyBehind(const std::vector<std::string>& members,
                                     const std::string& between, std::size_t most);

}  // namespace penstock::router::tgi
