#include "tools/simshard/fault_script.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <sstream>

#include "common/bad_option.h"
#include "common/status.h"
#include "tools/simshard/token_script.h"

namespace penstock::simshard {
namespace {

constexpr std::array<std::string_view, 8> kKinds = {"kill", "fail", "hang",   "stall",
                                                    "late", "slow", "desync", "invalid"};

template <typename T>
absl::Status ReadNumber(const std::string& key, const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return absl::OkStatus();
  return BadOption("faults", key + "=" + text, key + "=N with a number N");
}

// Line breaks and semicolons separate faults. A comment ends with its line.
std::vector<std::string> SplitFaults(std::string_view text) {
  std::vector<std::string> parts;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream faults(line.substr(0, line.find('#')));
    for (std::string fault; std::getline(faults, fault, ';');) {
      if (fault.find_first_not_of(" \t\r") != std::string::npos) parts.push_back(fault);
    }
  }
  return parts;
}

}  // namespace

absl::StatusOr<FaultScript> FaultScript::Parse(std::string_view text, std::uint64_t seed) {
  FaultScript script;
  for (const std::string& part : SplitFaults(text)) {
    PENSTOCK_ASSIGN_OR_RETURN(Fault fault, ParseFault(part));
    fault.salt = MixHash(seed, script.faults_.size());
    script.faults_.push_back(std::move(fault));
  }
  return script;
}

absl::StatusOr<FaultScript::Fault> FaultScript::ParseFault(const std::string& text) {
  std::istringstream words(text);
  Fault fault;
  words >> fault.kind;
  if (std::find(kKinds.begin(), kKinds.end(), fault.kind) == kKinds.end()) {
    return BadOption("faults", fault.kind,
                     "kill, fail, hang, stall, late, slow, desync or invalid");
  }
  for (std::string word; words >> word;) {
    const std::size_t equal = word.find('=');
    if (equal == std::string::npos) return BadOption("faults", word, "key=value");
    PENSTOCK_RETURN_IF_ERROR(SetKey(fault, word.substr(0, equal), word.substr(equal + 1)));
  }
  if (fault.from == 0) return BadOption("faults", text, "with a step: at=N or from=N");
  const bool needs_ms = fault.kind == "stall" || fault.kind == "late";
  if (needs_ms && fault.ms == 0) return BadOption("faults", text, "with ms=N above 0");
  if (fault.kind == "slow" && fault.factor < 2) {
    return BadOption("faults", text, "with factor=N above 1");
  }
  return fault;
}

absl::Status FaultScript::SetKey(Fault& fault, const std::string& key, const std::string& value) {
  if (key == "at") {
    PENSTOCK_RETURN_IF_ERROR(ReadNumber(key, value, fault.from));
    fault.to = fault.from;
    if (fault.times == kNever) fault.times = 1;
    return absl::OkStatus();
  }
  if (key == "from") return ReadNumber(key, value, fault.from);
  if (key == "to") return ReadNumber(key, value, fault.to);
  if (key == "times") return ReadNumber(key, value, fault.times);
  if (key == "group") return ReadNumber(key, value, fault.group);
  if (key == "rank") return ReadNumber(key, value, fault.rank);
  if (key == "probability") return ReadNumber(key, value, fault.probability);
  if (key == "ms") return ReadNumber(key, value, fault.ms);
  if (key == "factor") return ReadNumber(key, value, fault.factor);
  return BadOption("faults", key + "=" + value,
                   "at, from, to, times, group, rank, probability, ms or factor");
}

FaultScript FaultScript::For(std::uint32_t group, std::uint32_t rank) const {
  FaultScript mine;
  for (const Fault& fault : faults_) {
    if (fault.group != kAll && fault.group != group) continue;
    if (fault.rank != kAll && fault.rank != rank) continue;
    mine.faults_.push_back(fault);
    mine.faults_.back().salt = MixHash(fault.salt, group);
  }
  return mine;
}

bool FaultScript::Strikes(const Fault& fault, std::uint64_t step) {
  if (step < fault.from || step > fault.to || fault.times == 0) return false;
  if (fault.probability >= 1) return true;
  constexpr std::uint64_t kParts = std::uint64_t{1} << 32;
  const auto bound = static_cast<std::uint64_t>(fault.probability * static_cast<double>(kParts));
  return MixHash(fault.salt, step) % kParts < bound;
}

StepFaults FaultScript::At(std::uint64_t step) {
  StepFaults now;
  for (Fault& fault : faults_) {
    if (!Strikes(fault, step)) continue;
    if (fault.times != kNever) --fault.times;
    now.kill |= fault.kind == "kill";
    now.fail |= fault.kind == "fail";
    now.hang |= fault.kind == "hang";
    now.desync |= fault.kind == "desync";
    now.invalid |= fault.kind == "invalid";
    now.delay += std::chrono::milliseconds(fault.ms);
    now.factor *= fault.factor;
  }
  return now;
}

}  // namespace penstock::simshard
