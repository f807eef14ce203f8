#include "router/api/openai/earlier_calls.h"

#include <string_view>
#include <unordered_set>

#include "router/json/unicode.h"

namespace penstock::router::openai {
namespace {

using json::Value;

std::string ShownValue(const Value& value) {
  return std::string(json::CutUtf8(json::ToText(value), 100));
}

ApiError WrongValue(const std::string& field, std::string_view limit, const Value& given) {
  return MustBe(field, limit, ShownValue(given));
}

// The member, unless it is null.
const Value* GivenMember(const Value& object, std::string_view key) {
  const Value* value = object.Find(key);
  return value == nullptr || value->is(Value::Kind::kNull) ? nullptr : value;
}

std::optional<ApiError> CheckCalledFunction(const Value& function, const std::string& path) {
  if (!function.is(Value::Kind::kObject)) return WrongValue(path, "an object", function);
  const Value* name = GivenMember(function, "name");
  if (name == nullptr) return Invalid(path + ".name", "is missing");
  if (!name->is(Value::Kind::kString)) return WrongValue(path + ".name", "a string", *name);
  const Value* arguments = GivenMember(function, "arguments");
  if (arguments == nullptr || arguments->is(Value::Kind::kString) ||
      arguments->is(Value::Kind::kObject)) {
    return std::nullopt;
  }
  return WrongValue(path + ".arguments", "a string of JSON or an object", *arguments);
}

// The ids of the calls up to a message.
class CallIds {
 public:
  std::optional<ApiError> AddCall(const Value& call, const std::string& path) {
    if (!call.is(Value::Kind::kObject)) return WrongValue(path, "an object", call);
    const Value* function = GivenMember(call, "function");
    if (function == nullptr) return Invalid(path + ".function", "is missing");
    if (auto error = CheckCalledFunction(*function, path + ".function")) return error;
    const Value* id = GivenMember(call, "id");
    if (id == nullptr) {
      some_without_ = true;
    } else if (id->is(Value::Kind::kString)) {
      ids_.insert(id->text);
    } else {
      return WrongValue(path + ".id", "a string", *id);
    }
    return std::nullopt;
  }

  std::optional<ApiError> CheckResult(const Value& message, const std::string& path) const {
    const Value* id = GivenMember(message, "tool_call_id");
    if (id == nullptr) return std::nullopt;
    if (!id->is(Value::Kind::kString)) return WrongValue(path, "a string", *id);
    if (id->text.empty() || some_without_ || ids_.contains(id->text)) return std::nullopt;
    return WrongValue(path, "the id of a call in an earlier message", *id);
  }

 private:
  std::unordered_set<std::string> ids_;
  bool some_without_ = false;
};

}  // namespace

std::string PlaceOfCall(std::size_t message, std::size_t call) {
  return "messages[" + std::to_string(message) + "].tool_calls[" + std::to_string(call) + "]";
}

std::optional<ApiError> CheckEarlierCalls(const Value& messages) {
  CallIds known;
  for (std::size_t i = 0; i < messages.elements.size(); ++i) {
    const Value& message = messages.elements[i];
    const std::string path = "messages[" + std::to_string(i) + "]";
    if (auto error = known.CheckResult(message, path + ".tool_call_id")) return error;
    const Value* calls = GivenMember(message, "tool_calls");
    if (calls == nullptr) continue;
    if (!calls->is(Value::Kind::kArray))
      return WrongValue(path + ".tool_calls", "an array", *calls);
    for (std::size_t k = 0; k < calls->elements.size(); ++k) {
      if (auto error = known.AddCall(calls->elements[k], PlaceOfCall(i, k))) return error;
    }
  }
  return std::nullopt;
}

}  // namespace penstock::router::openai
