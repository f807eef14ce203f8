#include "launcher/serving/key_effects.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/options/table.h"

namespace penstock::launcher::effects {
namespace {

KeyEffect Sets(std::string option, std::string value) {
  KeyEffect effect;
  effect.options.emplace_back(std::move(option), std::move(value));
  return effect;
}

KeyEffect Must(std::string error) {
  KeyEffect effect;
  effect.error = "must be " + std::move(error);
  return effect;
}

std::optional<std::int64_t> ToInteger(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Sets `option` if the launcher has it. For the padded layout and contrastive search.
void AddIfKnown(KeyEffect& effect, std::string_view option, std::string_view value) {
  const options::ProgramOptions launcher = options::ProgramFor(options::kLauncher);
  if (options::Find(launcher, option) != nullptr) effect.options.emplace_back(option, value);
}

}  // namespace

KeyEffect ModelId(const std::string& value) {
  for (const std::string_view scheme : {"s3://", "djl://", "http://", "https://"}) {
    if (value.starts_with(scheme)) {
      return Must("a folder or a Hugging Face id: " + std::string(scheme) +
                  " addresses are not fetched; fetch the model first and give its folder");
    }
  }
  return Sets("model-id", value);
}

KeyEffect TensorParallel(const std::string& value) {
  if (value != "-1" && value != "max") return Sets("num-shard", value);
  KeyEffect effect = Sets("num-shard", "1");
  effect.note = "option.tensor_parallel_degree=" + value +
                " asks for every accelerator: on a CPU that is one rank with all cores";
  return effect;
}

KeyEffect DType(const std::string& value) {
  if (value == "int8") {
    return Must("fp32, bf16, fp16 or auto; for weights of 8 bits start with --quantize int8");
  }
  if (value != "fp16" && value != "float16" && value != "half") return Sets("dtype", value);
  KeyEffect effect = Sets("dtype", "auto");
  effect.note =
      "option.dtype=" + value +
      ": CPUs do not compute in float16; a checkpoint in bfloat16 is computed in bfloat16, any "
      "other in float32, which holds every float16 value exactly";
  return effect;
}

KeyEffect RollingBatch(const std::string& value) {
  if (value == "scheduler") {
    KeyEffect effect = Sets("split", "sparsity");
    AddIfKnown(effect, "kv-layout", "padded");
    AddIfKnown(effect, "contrastive-search", "true");
    return effect;
  }
  for (const std::string_view known :
       {"auto", "vllm", "lmi-dist", "trtllm", "deepspeed", "neuronx"}) {
    if (value == known) return Sets("batching", "continuous");
  }
  if (value == "disable") return Sets("batching", "none");
  return Must("scheduler, auto, disable, or one of vllm, lmi-dist, trtllm, deepspeed, neuronx");
}

KeyEffect DecodingStrategy(const std::string& value) {
  KeyEffect effect = Sets("decoding-strategy", value);
  if (value == "contrastive") AddIfKnown(effect, "contrastive-search", "true");
  return effect;
}

KeyEffect OutputFormatter(const std::string& value) {
  if (value == "json" || value == "json_chat") return Sets("output-formatter", "json");
  if (value == "jsonlines" || value == "jsonlines_chat") {
    return Sets("output-formatter", "jsonlines");
  }
  if (value == "sse" || value == "sse_chat") return Sets("output-formatter", "sse");
  return Must("json, jsonlines or sse: functions of a handler are not run");
}

KeyEffect ChunkedPrefill(const std::string& value) {
  if (value == "true") return Sets("prefill", "chunked");
  return value == "false" ? Sets("prefill", "whole") : Must("true or false");
}

// The running batch is added to it once the whole file is known.
KeyEffect JobQueueSize(const std::string& value) {
  const auto size = ToInteger(value);
  if (!size || *size < 1) return Must("an integer of at least 1");
  return Sets("max-concurrent-requests", value);
}

KeyEffect BatchSize(const std::string& value) {
  const auto size = ToInteger(value);
  if (!size || *size < 1) return Must("an integer of at least 1");
  if (*size == 1) return {};
  KeyEffect effect = Sets("batching", "static");
  effect.options.emplace_back("max-batch-size", value);
  return effect;
}

KeyEffect InferenceAddress(const std::string& value) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = value;
  const std::size_t colon = rest.rfind(':');
  const bool whole = rest.starts_with(kScheme) && colon != rest.npos && colon > kScheme.size();
  if (!whole || !ToInteger(rest.substr(colon + 1))) {
    return Must("http://HOST:PORT; TLS is set up with --tls-cert and --tls-key");
  }
  KeyEffect effect = Sets("port", std::string(rest.substr(colon + 1)));
  effect.options.emplace_back("hostname", rest.substr(kScheme.size(), colon - kScheme.size()));
  return effect;
}

}  // namespace penstock::launcher::effects
