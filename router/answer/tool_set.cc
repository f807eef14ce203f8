#include "router/answer/tool_set.h"

#include <absl/status/status.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "common/status.h"
#include "router/json/reader.h"

namespace penstock::router::answer {
namespace {

using json::Value;

constexpr int kMaxReferences = 8;

ParameterTypes TypeNamed(std::string_view name) {
  if (name == "string") return kString;
  if (name == "number" || name == "integer") return kNumber;
  if (name == "boolean") return kBoolean;
  if (name == "null") return kNull;
  if (name == "array") return kArray;
  return name == "object" ? kObject : 0;
}

ParameterTypes TypeOfValue(const Value& value) {
  // In the order of Value::Kind.
  constexpr ParameterTypes kTypes[] = {kNull, kBoolean, kNumber, kString, kArray, kObject};
  return kTypes[static_cast<std::size_t>(value.kind)];
}

// The definition that "#/$defs/NAME" names in `root`.
const Value* Resolve(const Value& root, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const Value* value = &root;
  std::string_view rest = reference.substr(2);
  while (value != nullptr) {
    const std::size_t end = rest.find('/');
    value = value->Find(rest.substr(0, end));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  return value;
}

// 0 if the schema does not say.
ParameterTypes TypesIn(const Value& schema, const Value& root, int references) {
  if (references > kMaxReferences) return 0;
  ParameterTypes types = 0;
  if (const Value* type = schema.Find("type")) {
    types |= TypeNamed(type->text);
    for (const Value& each : type->elements) types |= TypeNamed(each.text);
    return types;
  }
  if (const Value* reference = schema.Find("$ref")) {
    const Value* target = Resolve(root, reference->text);
    return target == nullptr ? 0 : TypesIn(*target, root, references + 1);
  }
  if (const Value* constant = schema.Find("const")) return TypeOfValue(*constant);
  if (const Value* values = schema.Find("enum")) {
    for (const Value& each : values->elements) types |= TypeOfValue(each);
    return types;
  }
  for (const std::string_view key : {"anyOf", "oneOf", "allOf"}) {
    const Value* list = schema.Find(key);
    if (list == nullptr) continue;
    for (const Value& each : list->elements) types |= TypesIn(each, root, references + 1);
  }
  if (types == 0 && schema.Find("properties") != nullptr) return kObject;
  if (types == 0 && schema.Find("items") != nullptr) return kArray;
  return types;
}

absl::Status Bad(std::string what) { return absl::InvalidArgumentError(std::move(what)); }

absl::Status ReadParameters(json::Reader& reader, Tool& tool) {
  std::string_view raw;
  if (!reader.ReadRaw(raw)) return absl::OkStatus();
  if (raw == "null") return absl::OkStatus();
  if (!raw.starts_with('{')) return Bad(".parameters must be an object");
  tool.parameters_json = raw;
  json::Reader inner(raw);
  json::ReadValue(inner, tool.parameters, "an object");
  return absl::OkStatus();
}

absl::StatusOr<Tool> ReadFunction(json::Reader& reader) {
  Tool tool;
  std::string key;
  if (!reader.EnterObject("an object")) return Bad(" must be an object");
  while (reader.NextKey(key) && reader.Colon()) {
    if (key == "name") {
      if (!reader.ReadString(tool.name, "a string")) return Bad(".name must be a string");
    } else if (key == "parameters") {
      PENSTOCK_RETURN_IF_ERROR(ReadParameters(reader, tool));
    } else if (key == "strict" && !reader.TakeNull()) {
      if (!reader.ReadBool(tool.strict, "a boolean")) return Bad(".strict must be a boolean");
    } else if (key != "strict") {
      reader.Skip();
    }
  }
  if (!reader.ok()) return Bad(": " + reader.error().Place());
  if (tool.name.empty()) return Bad(".name must be a name that is not empty");
  if (tool.name.size() > kMaxToolNameBytes) {
    return Bad(".name must have at most " + std::to_string(kMaxToolNameBytes) +
               " bytes. Given: " + std::to_string(tool.name.size()));
  }
  return tool;
}

absl::StatusOr<Tool> ReadTool(json::Reader& reader) {
  std::string type = "function";
  std::optional<Tool> tool;
  std::string key;
  if (!reader.EnterObject("an object")) return Bad(" must be an object");
  while (reader.NextKey(key) && reader.Colon()) {
    if (key == "type") {
      if (!reader.ReadString(type, "a string")) return Bad(".type must be a string");
    } else if (key == "function") {
      auto function = ReadFunction(reader);
      if (!function.ok()) return Bad(".function" + std::string(function.status().message()));
      tool = *std::move(function);
    } else {
      reader.Skip();
    }
  }
  if (!reader.ok()) return Bad(": " + reader.error().Place());
  if (type != "function") return Bad(".type must be \"function\". Given: \"" + type + "\"");
  if (!tool) return Bad(" must have a `function`");
  return *std::move(tool);
}

}  // namespace

ParameterTypes Tool::TypesOf(std::string_view parameter) const {
  const Value* properties = parameters.Find("properties");
  const Value* schema = properties == nullptr ? nullptr : properties->Find(parameter);
  const ParameterTypes types = schema == nullptr ? 0 : TypesIn(*schema, parameters, 0);
  return types == 0 ? kAnyType : types;
}

const Tool* ToolSet::Find(std::string_view name) const {
  const auto found = std::ranges::find(tools_, name, &Tool::name);
  return found == tools_.end() ? nullptr : &*found;
}

absl::StatusOr<ToolSet> ParseTools(std::string_view tools_json) {
  std::vector<Tool> tools;
  std::unordered_set<std::string> names;
  json::Reader reader(tools_json);
  if (!reader.EnterArray("an array")) return Bad(" must be an array");
  while (reader.NextElement()) {
    const std::string place = "[" + std::to_string(tools.size()) + "]";
    if (tools.size() == kMaxTools) {
      return Bad(" must have at most " + std::to_string(kMaxTools) + " tools");
    }
    auto tool = ReadTool(reader);
    if (!tool.ok()) return Bad(place + std::string(tool.status().message()));
    if (!names.insert(tool->name).second) {
      return Bad(place + ".function.name must be unique. Given twice: \"" + tool->name + "\"");
    }
    tool->index = tools.size();
    tools.push_back(*std::move(tool));
  }
  if (!reader.ok()) return Bad(": " + reader.error().Place());
  return ToolSet(std::move(tools));
}

}  // namespace penstock::router::answer
