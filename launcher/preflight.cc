#include "launcher/preflight.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "common/bad_option.h"
#include "common/exit_codes.h"
#include "common/json_parse.h"
#include "common/model_format.h"
#include "common/status.h"
#include "common/world_size.h"
#include "launcher/launch_plan.h"
#include "launcher/read_file.h"
#include "launcher/running_server.h"
#include "launcher/unique_fd.h"

namespace penstock::launcher {
namespace {

namespace fs = std::filesystem;

absl::Status ModelError(const std::string& folder, const std::string& what) {
  return absl::InvalidArgumentError("--model-id " + folder + ": " + what);
}

// "; give one of the model folders in it: a, b" if it does; the first five by name.
std::string ModelsIn(const std::string& folder) {
  constexpr std::size_t kShown = 5;
  std::set<std::string> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!fs::exists(entry.path() / "config.json", error)) continue;
    models.insert(entry.path().filename().string());
  }
  std::string text;
  std::size_t shown = 0;
  for (const std::string& model : models) {
    if (shown++ == kShown) return text + " and " + std::to_string(models.size() - kShown) + " more";
    text += (text.empty() ? "; give one of the model folders in it: " : ", ") +
            (fs::path(folder) / model).string();
  }
  return text;
}

// What to do about a file that is missing in the folder of a model.
std::string AdviceOn(const std::string& folder, const std::string& name) {
  std::error_code error;
  if (std::string models = ModelsIn(folder); name == "config.json" && !models.empty()) {
    return models;
  }
  if (name == "tokenizer.json" && fs::exists(folder + "/tokenizer.model", error)) {
    return "; tokenizer.model alone is not enough: save the tokenizer again with transformers, "
           "which writes tokenizer.json";
  }
  return "; the folder of a model holds config.json, tokenizer.json and .safetensors files";
}

absl::StatusOr<std::string> ReadModelFile(const std::string& folder, const std::string& name) {
  absl::StatusOr<std::string> text =
      ReadFile(folder + "/" + name, "--model-id " + folder + ": " + name);
  std::error_code error;
  if (text.ok() || fs::exists(folder + "/" + name, error)) return text;
  return absl::InvalidArgumentError(Message(text.status()) + AdviceOn(folder, name));
}

absl::Status CheckConfig(const std::string& folder) {
  absl::StatusOr<std::string> text = ReadModelFile(folder, "config.json");
  if (!text.ok()) return text.status();
  constexpr std::size_t kMaxDepth = 32;
  const auto config = ParseJson(*text, kMaxDepth);
  if (!config.ok()) return ModelError(folder, "config.json " + Message(config.status()));
  if (!config->is_object()) return ModelError(folder, "config.json must be a JSON object");
  if (!config->as_object().contains("model_type")) {
    return ModelError(folder, "config.json must have a model_type");
  }
  return absl::OkStatus();
}

bool ScalesPositions(const boost::json::object& config) {
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto* scaling = config.if_contains(name);
    if (scaling == nullptr || !scaling->is_object()) continue;
    const auto* type = scaling->as_object().if_contains("rope_type");
    if (type == nullptr || !type->is_string() || type->as_string() != "default") return true;
  }
  return false;
}

std::optional<std::int64_t> Integer(const boost::json::object& config, std::string_view name) {
  const auto* value = config.if_contains(name);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->as_int64();
}

// The context length in config.json, if no other entry extends it.
absl::Status CheckLength(const options::Values& values, const boost::json::object& config) {
  const std::optional<std::int64_t> positions = Integer(config, "max_position_embeddings");
  if (!positions || ScalesPositions(config)) return absl::OkStatus();
  const std::string context = std::to_string(*positions) + ", the model's context";
  if (const auto total = values.FindInt("max-total-tokens"); total && *total > *positions) {
    return BadOption("max-total-tokens", std::to_string(*total), "at most " + context);
  }
  if (const auto input = values.FindInt("max-input-tokens"); input && *input >= *positions) {
    return BadOption("max-input-tokens", std::to_string(*input), "below " + context);
  }
  return absl::OkStatus();
}

// The shard refuses impossible sizes, with the name of the file.
absl::Status CheckRanks(const options::Values& values, const boost::json::object& config) {
  // 0 if it is absent.
  const auto size = [&config](std::string_view name) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, Integer(config, name).value_or(0)));
  };
  // The shard knows which layers of a mixture of experts have an MLP of this size.
  const bool experts = config.contains("num_experts") || config.contains("num_local_experts") ||
                       config.contains("n_routed_experts");
  return CheckWorldSize(static_cast<std::uint64_t>(values.GetInt("num-shard")),
                        {{size("num_attention_heads"), "attention heads"},
                         {experts ? 0 : size("intermediate_size"), "FFN columns"},
                         {size("num_key_value_heads"), "K/V heads", true}});
}

// Whether the options fit the model, by its config.json.
absl::Status CheckFit(const options::Values& values) {
  const std::string& folder = values.GetString("model-id");
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, ReadModelFile(folder, "config.json"));
  const boost::json::object whole = boost::json::parse(text).as_object();
  // The sizes of a model with a vision tower are those of its text model.
  const boost::json::value* const part = whole.if_contains("text_config");
  const boost::json::object& config =
      part != nullptr && part->is_object() ? part->as_object() : whole;
  PENSTOCK_RETURN_IF_ERROR(CheckLength(values, config));
  return CheckRanks(values, config);
}

bool HasSafetensors(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") return true;
  }
  return false;
}

absl::Status CheckSimulation(const options::Values& values) {
  if (UsesSimulatedShards(values)) return absl::OkStatus();
  for (const options::OptionSpec* spec : values.program().options) {
    if (spec->group != "Simulation" || !values.IsSet(spec->name)) continue;
    // The environment may be meant for simulated shards that a user starts.
    if (values.SourceOf(spec->name) == options::Source::kEnvironment) continue;
    return absl::InvalidArgumentError("--" + std::string(spec->name) + " " +
                                      values.TextOf(spec->name) +
                                      ": must come with --shard-program .../penstock-simshard");
  }
  return absl::OkStatus();
}

absl::Status CheckProgram(const options::Values& values, std::string_view option) {
  const std::string& path = values.GetString(option);
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  if (path.empty() || (!folder && ::access(path.c_str(), X_OK) == 0)) return absl::OkStatus();
  return BadOption(
      option, path,
      std::string("a program that can be started: ") + std::strerror(folder ? EISDIR : errno));
}

// What asks for libtorch: "--backend reference".
std::string TorchReason(const options::Values& values) {
  if (values.GetString("backend") == "reference") return "--backend reference";
  if (values.GetString("dtype") == "float16") return "--dtype float16";
  return "this processor without AVX2 and FMA";
}

absl::Status CheckDevice(const options::Values& values, const Machine& machine) {
  if (NeedsTorch(values, machine) && !machine.torch_shard) {
    return absl::FailedPreconditionError(TorchReason(values) +
                                         ": penstock-shard-torch is not built: run `make torch`");
  }
  if (!UsesGpus(values, machine)) {
    if (values.GetString("backend") != "cuda") return absl::OkStatus();
    return absl::FailedPreconditionError(
        "--backend cuda: must come with --device cuda, or with a GPU for each rank");
  }
  if (values.GetString("backend") == "cpu") {
    return absl::InvalidArgumentError("--backend cpu: must come with --device cpu or auto");
  }
  if (!machine.cuda_shard && values.GetString("shard-program").empty()) {
    return absl::FailedPreconditionError(
        "--device cuda: penstock-shard-cuda is not built: run `make cuda`");
  }
  if (!machine.gpus.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "--device cuda: this machine shows no NVIDIA GPU: no driver is loaded, or "
      "CUDA_VISIBLE_DEVICES hides every device");
}

}  // namespace

std::vector<std::string> DeviceWarnings(const options::Values& values, const Machine& machine) {
  std::vector<std::string> warnings;
  if (values.GetBool("trust-remote-code") && !UsesTransformers(values)) {
    warnings.push_back(
        "--trust-remote-code: has no effect: only --engine transformers runs code of a model");
  }
  if (UsesGpus(values, machine) || values.GetDouble("cuda-memory-fraction") == 1) return warnings;
  warnings.push_back("--cuda-memory-fraction " + values.TextOf("cuda-memory-fraction") +
                     ": has no effect: the shards use no GPU; --kv-cache-memory bounds the KV "
                     "cache");
  return warnings;
}

absl::Status CheckModelFolder(const std::string& folder, ModelUse use) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status)) {
    return ModelError(folder, "there is no such folder; a model is loaded from a local folder");
  }
  const std::string other = use == ModelUse::kWeights ? OtherFormat(FilesOf(folder)) : "";
  if (!other.empty()) return ModelError(folder, other);
  if (!fs::is_directory(status)) return ModelError(folder, "must be a folder, not a file");
  if (use != ModelUse::kTokenizer) {
    const absl::Status config = CheckConfig(folder);
    if (!config.ok()) return config;
  }
  absl::StatusOr<std::string> tokenizer = ReadModelFile(folder, "tokenizer.json");
  if (!tokenizer.ok()) return tokenizer.status();
  if (use == ModelUse::kWeights && !HasSafetensors(folder)) {
    return ModelError(folder, "must hold a .safetensors file; other formats are not read");
  }
  return absl::OkStatus();
}

namespace {

absl::Status AddressInUse(const std::string& where, const std::string& host, int port) {
  const auto penstock = FindRunningServer(host, port);
  const std::string who = penstock ? "a Penstock server, which answers on " + penstock->url
                                   : std::string("another program");
  const int next = port < 65535 ? port + 1 : port - 1;
  return absl::UnavailableError(where + ": in use by " + who + "; choose another port, such as " +
                                "--port " + std::to_string(next) +
                                ", or --port 0 for any free one");
}

}  // namespace

absl::Status CheckAddress(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        "--hostname " + host + ": must be an address of this machine: " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, &::freeaddrinfo);
  const UniqueFd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As in the router, so that connections of a server that just stopped do not matter.
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd.open() && ::bind(fd.get(), address->ai_addr, address->ai_addrlen) == 0 &&
      ::listen(fd.get(), 1) == 0) {
    return absl::OkStatus();
  }
  const std::string where = "--hostname " + host + " --port " + std::to_string(port);
  if (errno == EADDRINUSE) return AddressInUse(where, host, port);
  return absl::UnavailableError(where + ": cannot listen there: " + std::strerror(errno));
}

absl::Status CheckSocketPrefix(const std::string& prefix) {
  if (prefix.empty()) return absl::OkStatus();
  const fs::path folder = fs::absolute(prefix).parent_path();
  struct stat info = {};
  // A folder that is missing is made, with the right mode.
  if (::stat(folder.c_str(), &info) != 0) return absl::OkStatus();
  if (info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--shard-uds-path " + prefix + ": the folder " + folder.string() +
      " must have mode 0700 and belong to the user of the server, because who reaches a socket "
      "controls the shard; without the option the launcher makes a private folder");
}

absl::Status CheckTorchFolder(const char* folder) {
  if (folder == nullptr || *folder == '\0') return absl::OkStatus();
  const std::string library = std::string(folder) + "/lib/libtorch_cpu.so";
  if (::access(library.c_str(), R_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("PENSTOCK_TORCH_DIR=" + std::string(folder) +
                                    ": must be the folder of the torch 2.11 package: " + library +
                                    ": " + std::strerror(errno));
}

Problem CheckBeforeStart(const options::Values& values, const Machine& machine) {
  const absl::Status simulation = CheckSimulation(values);
  if (!simulation.ok()) return {kExitUsage, Message(simulation)};
  for (const std::string_view option : {"shard-program", "router-program"}) {
    const absl::Status program = CheckProgram(values, option);
    if (!program.ok()) return {kExitUsage, Message(program)};
  }
  const absl::Status sockets = CheckSocketPrefix(values.GetString("shard-uds-path"));
  if (!sockets.ok()) return {kExitUsage, Message(sockets)};
  if (!UsesSimulatedShards(values)) {
    const absl::Status torch = CheckTorchFolder(std::getenv("PENSTOCK_TORCH_DIR"));
    if (!torch.ok()) return {kExitUsage, Message(torch)};
  }
  const ModelUse use = UsesSimulatedShards(values) ? ModelUse::kTokenizer
                       : UsesTransformers(values)  ? ModelUse::kTransformers
                                                   : ModelUse::kWeights;
  const absl::Status model = CheckModelFolder(values.GetString("model-id"), use);
  if (!model.ok()) return {kExitModel, Message(model)};
  if (use == ModelUse::kWeights) {
    const absl::Status fit = CheckFit(values);
    if (!fit.ok()) return {kExitUsage, Message(fit)};
  }
  const absl::Status device = CheckDevice(values, machine);
  if (!device.ok()) return {kExitDevice, Message(device)};
  const absl::Status address =
      CheckAddress(values.GetString("hostname"), static_cast<int>(values.GetInt("port")));
  if (!address.ok()) return {kExitAddress, Message(address)};
  return {};
}

}  // namespace penstock::launcher
