// Generated answers, and how each format writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/answer/events.h"
#include "router/answer/format.h"
#include "router/answer/tool_set.h"

namespace penstock::router::answer::testing {

// Name of a parameter and its value as JSON text.
using Argument = std::pair<std::string, std::string>;

struct WrittenCall {
  std::string name;
  std::vector<Argument> arguments;
};

// The parts of an answer in their order: reasoning, text, calls, text.
struct Script {
  std::string reasoning;
  std::string text;
  std::vector<WrittenCall> calls;
  std::string last_text;

  Answer Expected() const;
};

// get_weather(city, days, …) and two tools whose names begin alike; as JSON, and parsed.
extern const std::string_view kSampleToolsJson;
std::shared_ptr<const ToolSet> SampleTools();

// {"name": value, …}
std::string ArgumentsJson(const std::vector<Argument>& arguments);

// A script that the format can write.
Script RandomScript(const Format& format, std::mt19937_64& random);

// What a model of the format generates.
std::string Write(const Format& format, const Script& script);

}  // namespace penstock::router::answer::testing
