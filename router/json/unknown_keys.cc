#include <algorithm>

#include "common/edit_distance.h"
#include "router/json/reader.h"
#include "router/json/unicode.h"

namespace penstock::router::json {
namespace {

// Empty unless at most a third of the key differs.
std::string NearestOf(std::string_view key, std::span<const std::string_view> known) {
  if (key.size() > UnknownKeys::kNameBytesMax) return "";
  std::size_t least = std::max<std::size_t>(1, key.size() / 3) + 1;
  std::string nearest;
  for (const std::string_view name : known) {
    const std::size_t distance = EditDistance(key, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace

void UnknownKeys::AddName(std::string_view name) {
  if (names.size() == kNamesMax || std::ranges::find(names, name) != names.end()) return;
  names.emplace_back(name);
}

void UnknownKeys::Add(std::string_view key, std::span<const std::string_view> known) {
  if (count++ == 0) nearest = NearestOf(key, known);
  AddName(CutUtf8(key, kNameBytesMax));
}

void UnknownKeys::Add(const UnknownKeys& others) {
  if (count == 0) nearest = others.nearest;
  count += others.count;
  for (const std::string& name : others.names) AddName(name);
  for (const std::string& name : others.without_effect) AddWithoutEffect(name);
}

void UnknownKeys::AddWithoutEffect(std::string_view key) {
  if (std::ranges::find(without_effect, key) == without_effect.end()) {
    without_effect.emplace_back(key);
  }
}

}  // namespace penstock::router::json
