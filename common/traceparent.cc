#include "common/traceparent.h"

namespace penstock {
namespace {

constexpr std::string_view kForm = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
static_assert(kForm.size() == kTraceparentLength);

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool HasForm(std::string_view fields) {
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == 'x' ? !IsHex(fields[i]) : fields[i] != '-') return false;
  }
  return true;
}

bool IsZero(std::string_view digits) { return digits.find_first_not_of('0') == digits.npos; }

}  // namespace

std::string_view TraceparentFields(std::string_view value) {
  const std::string_view fields = value.substr(0, kForm.size());
  if (fields.size() < kForm.size() || !HasForm(fields)) return {};
  // Later versions may append fields after a dash. Version 255 is forbidden.
  const std::string_view version = fields.substr(0, 2);
  const bool longer = value.size() > fields.size();
  if (version == "ff" || (longer && (version == "00" || value[fields.size()] != '-'))) return {};
  if (IsZero(fields.substr(3, 32)) || IsZero(fields.substr(36, 16))) return {};
  return fields;
}

}  // namespace penstock
