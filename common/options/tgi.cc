#include "common/options/tgi.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "common/options/table.h"

namespace penstock::options {
namespace {

constexpr TgiFlag kFlags[] = {
    {"model-id", "Required: no model is assumed.", kLauncher},
    {"revision", "Revision of a fetched model; a warning is logged for a local folder."},
    {"validation-workers"},
    {"sharded", "", kLauncher},
    {"num-shard", "", kLauncher},
    {"quantize", "", kLauncher},
    {"speculate", "N-gram lookup; seeded answers keep their tokens, too. At most 15.", kLauncher},
    {"dtype", "float32 and auto, too.", kLauncher},
    {"kv-cache-dtype", "", kLauncher},
    {"trust-remote-code",
     "Code of a model runs with `--engine transformers` alone; without it a warning is logged.",
     kLauncher},
    {"max-concurrent-requests"},
    {"max-best-of"},
    {"max-stop-sequences"},
    {"max-top-n-tokens"},
    {"max-input-tokens"},
    {"max-input-length", "", kLauncher},
    {"max-total-tokens"},
    {"waiting-served-ratio", "Needs `--prefill whole`; a warning is logged without it."},
    {"max-batch-prefill-tokens"},
    {"max-batch-total-tokens", "Always applied; TGI ignores it for most models."},
    {"max-waiting-tokens", "Needs `--prefill whole`; a warning is logged without it."},
    {"max-batch-size", "Applied at every step, not only to the first batch."},
    {"cuda-graphs", "", kLauncher},
    {"hostname", "127.0.0.1 by default; 0.0.0.0 under the name text-generation-launcher."},
    {"port"},
    {"prometheus-port"},
    {"shard-uds-path",
     "The folder must have mode 0700 and belong to the user who starts the server. Unset: a "
     "private folder.",
     kLauncher},
    {"master-addr", "", kLauncher},
    {"master-port", "", kLauncher},
    {"huggingface-hub-cache", "", kLauncher},
    {"weights-cache-override", "", kLauncher},
    {"disable-custom-kernels", "", kLauncher},
    {"cuda-memory-fraction", "", kLauncher},
    {"rope-scaling", "", kLauncher},
    {"rope-factor", "", kLauncher},
    {"json-output"},
    {"otlp-endpoint"},
    {"otlp-service-name"},
    {"cors-allow-origin"},
    {"api-key",
     "The launcher's line in the list of processes shows it: prefer `API_KEY`, or "
     "`--api-keys-file` for several keys."},
    {"watermark-gamma", "", kLauncher},
    {"watermark-delta", "", kLauncher},
    {"ngrok"},
    {"ngrok-authtoken"},
    {"ngrok-edge"},
    {"tokenizer-config-path"},
    {"disable-grammar-support"},
    {"env", "Ends after printing when no model is named.", kLauncher},
    {"max-client-batch-size"},
    {"lora-adapters", "", kLauncher},
    {"usage-stats"},
    {"payload-limit",
     "16 MiB by default; 2,000,000 bytes under the name text-generation-launcher."},
    {"enable-prefill-logprobs", "", kLauncher},
    {"graceful-termination-timeout", "Queued and running requests are finished first.", kLauncher},
    {"master-shard-uds-path", "", kRouter},
    {"tokenizer-name", "A folder.", kRouter},
    {"max-image-fetch-size"},
};

// The first part of "h2=error,info" that names no module: those modules are not here.
std::string_view PlainLevel(std::string_view text) {
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    if (part.find('=') == std::string_view::npos || comma == std::string_view::npos) return part;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::string> LogLevel(std::string_view text) {
  const std::string level = absl::AsciiStrToLower(std::string(PlainLevel(text)));
  if (level == "warn") return "warning";
  if (level == "trace") return "debug";
  if (level == "debug" || level == "info" || level == "warning" || level == "error") return level;
  return std::nullopt;
}

std::optional<std::string> PythonBool(std::string_view text) {
  if (text == "1" || text == "true" || text == "True") return "true";
  if (text == "0" || text == "false" || text == "False") return "false";
  return std::nullopt;
}

std::optional<std::string> Prefill(std::string_view text) {
  const auto chunked = PythonBool(text);
  if (!chunked.has_value()) return std::nullopt;
  return *chunked == "true" ? "chunked" : "whole";
}

// Many machines have a variable ENV that names a stage ("production").
std::optional<std::string> OnlyTrue(std::string_view text) {
  if (text == "true") return "true";
  return std::nullopt;
}

constexpr std::string_view kRead = "Read as the Hugging Face libraries read it.";
constexpr std::string_view kSageMaker =
    "From TGI's image for SageMaker, whose port is 8080: set PORT.";

constexpr EnvironmentRow kVariables[] = {
    {"LOG_LEVEL", "log-level", LogLevel, "The plain level of a filter counts."},
    {"COMPUTE_TYPE", "compute-type"},
    {"PREFIX_CACHING", "prefix-caching", PythonBool},
    {"USE_PREFIX_CACHING", "prefix-caching", PythonBool},
    {"PREFILL_CHUNKING", "prefill", Prefill, "1: chunked; 0: whole."},
    {"ATTENTION", "", nullptr, "There is one kind of attention for each device."},
    {"USE_FLASH_ATTENTION", "", nullptr, "There is one kind of attention for each device."},
    {"TGI_WIGGLE_ROOM", "", nullptr, "The cache is planned by bytes; --kv-cache-memory sets it."},
    {"LOG_COLORIZE", "", nullptr, "Logs have no colours."},
    {"REQUEST_LOGPROBS", "", nullptr, "Log-probabilities of prompts are always there."},
    {.name = "HF_TOKEN", .note = kRead, .silent = true},
    {.name = "HF_API_TOKEN", .note = kRead, .silent = true},
    {.name = "HF_ENDPOINT", .note = kRead, .silent = true},
    {.name = "HF_HOME", .note = kRead, .silent = true},
    {.name = "HF_HUB_CACHE", .note = kRead, .silent = true},
    {.name = "HF_HUB_OFFLINE", .note = kRead, .silent = true},
    {.name = "HF_HUB_ENABLE_HF_TRANSFER",
     .note = "Files are always fetched in ranges over several connections.",
     .silent = true},
    {.name = "CUDA_VISIBLE_DEVICES",
     .note = "Ranks get the GPUs that it names, in its order.",
     .silent = true},
    {.name = "NVIDIA_VISIBLE_DEVICES", .note = "Read by the container runtime.", .silent = true},
    {.name = "HF_KERNELS_CACHE",
     .note = "No kernels are fetched: all are built in.",
     .silent = true},
    {"HF_MODEL_ID", "model-id", nullptr, kSageMaker},
    {"HF_MODEL_REVISION", "revision", nullptr, kSageMaker},
    {"SM_NUM_GPUS", "num-shard", nullptr, kSageMaker},
    {"HF_MODEL_QUANTIZE", "quantize", nullptr, kSageMaker},
    {"HF_MODEL_TRUST_REMOTE_CODE", "trust-remote-code", nullptr, kSageMaker},
};

std::string VariableOf(std::string_view flag) {
  std::string name = absl::AsciiStrToUpper(std::string(flag));
  std::ranges::replace(name, '-', '_');
  return name;
}

// The rows of one program. The variable names made from flags are never freed.
const std::vector<EnvironmentRow>& MakeVariables(Components component) {
  auto& names = *new std::vector<std::string>(std::size(kFlags));
  auto& rows = *new std::vector<EnvironmentRow>;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((kFlags[i].components & component) == 0) continue;
    names[i] = VariableOf(kFlags[i].name);
    EnvironmentRow row{.name = names[i], .option = kFlags[i].name};
    if (row.name == "ENV") row.translate = OnlyTrue;
    rows.push_back(row);
  }
  for (const EnvironmentRow& row : kVariables) {
    // The image's script sets up the launcher, never a router.
    if (component == kLauncher || row.note != kSageMaker) rows.push_back(row);
  }
  return rows;
}

constexpr Preset kLauncherPresets[] = {
    {"hostname", "0.0.0.0"}, {"api-profile", "tgi"}, {"payload-limit", "2000000"}};

constexpr Preset kRouterPresets[] = {{"hostname", "0.0.0.0"},
                                     {"api-profile", "tgi"},
                                     {"payload-limit", "2000000"},
                                     {"waiting-served-ratio", "1.2"}};

}  // namespace

std::span<const TgiFlag> TgiFlags() { return kFlags; }

std::span<const EnvironmentRow> TgiOtherVariables() { return kVariables; }

const std::vector<EnvironmentRow>& TgiVariables(Components component) {
  static const auto& launcher = MakeVariables(kLauncher);
  static const auto& router = MakeVariables(kRouter);
  return component == kRouter ? router : launcher;
}

const Profile* FindTgiProfile(std::string_view program) {
  static const Profile& launcher = *new Profile{"text-generation-launcher", kLauncher,
                                                kLauncherPresets, TgiVariables(kLauncher)};
  static const Profile& router =
      *new Profile{"text-generation-router", kRouter, kRouterPresets, TgiVariables(kRouter)};
  for (const Profile* profile : {&launcher, &router}) {
    if (profile->name == program) return profile;
  }
  return nullptr;
}

}  // namespace penstock::options
