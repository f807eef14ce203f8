#include <algorithm>
#include <utility>

#include "common/edit_distance.h"
#include "router/json/reader.h"
#include "router/json/unicode.h"

namespace penstock::router::json {
namespace {

// Keys of other servers that mean the same.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"stop_sequences", "stop"},
    {"stop", "stop_sequences"},
    {"max_completion_tokens", "max_tokens"},
    {"max_new_tokens", "max_tokens"},
    {"max_tokens", "max_new_tokens"},
    {"max_length", "max_tokens"},
};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The known key that was probably meant: equal but for upper and lower case, a synonym, or the one
// with the smallest edit distance, at most a third of the length. Empty if there is none.
std::string NearestOf(std::string_view key, std::span<const std::string_view> known) {
  if (key.size() > UnknownKeys::kNameBytesMax) return "";
  for (const std::string_view name : known) {
    if (std::ranges::equal(key, name, {}, Lower, Lower)) return std::string(name);
  }
  for (const auto& [other, name] : kSynonyms) {
    if (key == other && std::ranges::find(known, name) != known.end()) return std::string(name);
  }
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

void UnknownKeys::Add(std::string_view path, std::string_view key,
                      std::span<const std::string_view> known) {
  if (count++ == 0) nearest = NearestOf(key, known);
  AddName(CutUtf8(path, kNameBytesMax));
}

void UnknownKeys::Add(const UnknownKeys& others) {
  if (count == 0) nearest = others.nearest;
  count += others.count;
  for (const std::string& name : others.names) AddName(name);
  for (const std::string& name : others.without_effect) AddWithoutEffect(name);
}

void UnknownKeys::AddNew(const UnknownKeys& others) {
  if (count == 0) nearest = others.nearest;
  for (const std::string& name : others.names) {
    if (std::ranges::find(names, name) != names.end()) continue;
    ++count;
    AddName(name);
  }
}

void UnknownKeys::AddWithoutEffect(std::string_view path) {
  if (std::ranges::find(without_effect, path) == without_effect.end()) {
    without_effect.emplace_back(path);
  }
}

}  // namespace penstock::router::json
