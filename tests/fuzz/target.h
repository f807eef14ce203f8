// Fuzz targets: readers of bytes that Penstock did not write. Each reads the bytes once and checks
// what it made of them. A crash, a leak, a hang or a failed check is a finding.
//
// A target keeps no state that changes what it makes of later inputs, so a finding repeats by
// itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::fuzz {

struct Target {
  std::string_view name;  // of its folder in tests/fuzz/corpus too
  void (*read)(std::string_view bytes);
};

// All targets, by name.
std::span<const Target> Targets();
// Null: there is none of that name.
const Target* FindTarget(std::string_view name);

// Ends the process with `what` unless it holds.
void Require(bool holds, std::string_view what);

// The parts of an input between lines of `----`. An input without such a line is one part.
std::vector<std::string_view> Parts(std::string_view bytes);
// The part of that number, or empty.
std::string_view PartOf(const std::vector<std::string_view>& parts, std::size_t index);

// The first line, which is taken off `bytes`.
std::string_view TakeLine(std::string_view& bytes);

// Records with a length of two bytes, low byte first. The last one may be cut.
std::vector<std::string_view> Records(std::string_view bytes);

// The readers, one file each in targets/.
void ReadAnthropic(std::string_view bytes);
void ReadDjl(std::string_view bytes);
void ReadEffective(std::string_view bytes);
void ReadNative(std::string_view bytes);
void ReadOllama(std::string_view bytes);
void ReadOpenai(std::string_view bytes);
void ReadResponses(std::string_view bytes);
void ReadSglang(std::string_view bytes);
void ReadTgi(std::string_view bytes);
void ReadVectors(std::string_view bytes);
void ReadHttp(std::string_view bytes);
void ReadChatTemplate(std::string_view bytes);
void ReadTokenizerJson(std::string_view bytes);
void ReadGrammar(std::string_view bytes);
void ReadModelConfig(std::string_view bytes);
void ReadSafetensors(std::string_view bytes);
void ReadPlans(std::string_view bytes);
void ReadStepResult(std::string_view bytes);
void ReadGenerateV3(std::string_view bytes);
void ReadInputLog(std::string_view bytes);
void ReadServingProperties(std::string_view bytes);
void ReadYaml(std::string_view bytes);

}  // namespace penstock::fuzz
