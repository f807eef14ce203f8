#include "launcher/serving/serving_keys.h"

#include <absl/strings/match.h>

#include <algorithm>

#include "common/edit_distance.h"
#include "common/options/table.h"
#include "launcher/serving/key_effects.h"

namespace penstock::launcher {
namespace {

using enum KeyUse;

constexpr ServingKey SetsOption(std::string_view name, std::string_view to, std::string_view text) {
  return {.name = name, .to = to, .text = text};
}

constexpr ServingKey Applies(std::string_view name, KeyEffect (*apply)(const std::string&),
                             std::string_view text) {
  return {.name = name, .apply = apply, .text = text};
}

constexpr ServingKey NoEffect(std::string_view name, std::string_view text) {
  return {.name = name, .use = kNoEffect, .text = text};
}

constexpr ServingKey Refused(std::string_view name, std::string_view neutral,
                             std::string_view text) {
  return {.name = name, .use = kRefused, .neutral = neutral, .text = text};
}

constexpr ServingKey OfServer(ServingKey key) {
  key.option = false;
  return key;
}

constexpr std::string_view kNoPython =
    "Penstock runs no Python: there is no handler to choose or to set up.";
constexpr std::string_view kNoAdapters =
    "Adapters are given by `--lora NAME=FOLDER`, and loaded by `POST /adapters`.";
constexpr std::string_view kNoDrafts = "There is no speculative decoding with a draft model.";
constexpr std::string_view kNoQuantized =
    "A quantized checkpoint needs no option; `--quantize int8` makes a byte of each weight while "
    "loading.";
constexpr std::string_view kOneHost = "A model is divided among the ranks of one host.";
constexpr std::string_view kFixedCodes =
    "The codes of DJL are answered: 400, 424, 500, 503. They cannot be chosen.";

constexpr ServingKey kKeys[] = {
    // Keys of the seq-scheduler document.
    OfServer(NoEffect("engine", "Penstock is the engine, whatever the file names.")),
    NoEffect("mpi_mode", "The launcher starts the ranks; no MPI."),
    Applies(
        "model_id", &effects::ModelId,
        "`--model-id`: a folder (also relative to that of the file) or a Hugging Face id. Unset: "
        "the folder of the file. `s3://` and `djl://` are refused: download the model first."),
    SetsOption("model_dir", "model-id", "`--model-id`, as `model_id`."),
    SetsOption("revision", "revision", "`--revision`."),
    Applies("tensor_parallel_degree", &effects::TensorParallel,
            "`--num-shard`. `-1` and `max` are 1 on a CPU, whose one rank uses all cores."),
    Applies("dtype|data_type", &effects::DType,
            "`--dtype`: `fp32`, `bf16`, `auto`. `fp16` is `auto` on a CPU, which has no arithmetic "
            "of that type: a bfloat16 checkpoint is computed as it is, one of float16 in float32, "
            "which holds it exactly. The type is printed at the start. `int8` is refused."),
    NoEffect("trust_remote_code",
             "Known architectures need no code of a model repository. `--engine transformers` with "
             "`--trust-remote-code` runs it."),
    Applies("rolling_batch", &effects::RollingBatch,
            "`scheduler`: the documented splitting rule (`--split sparsity`), the padded KV layout "
            "and contrastive search. `auto`, `vllm`, `lmi-dist`, `trtllm`, `deepspeed`, `neuronx`: "
            "continuous batching, which is the default. `disable`: `--batching none`, or static "
            "batches of `batch_size`."),
    SetsOption("max_rolling_batch_size", "max-batch-size", "`--max-batch-size`; 32 when unset."),
    SetsOption("max_sparsity", "max-sparsity", "`--max-sparsity`, 0 to 1; 0.33."),
    SetsOption("max_splits", "max-splits", "`--max-splits`, at least 1; 3."),
    Applies(
        "decoding_strategy", &effects::DecodingStrategy,
        "`--decoding-strategy`: `greedy`, `sample` or `contrastive`, for requests that name none."),
    // Keys of all backends.
    Applies("output_formatter", &effects::OutputFormatter,
            "`--output-formatter`: `json`, `jsonlines`, `sse` (their `_chat` forms are the same "
            "here, since chats have an interface of their own). Custom functions are refused."),
    SetsOption("tgi_compat", "tgi-compat", "`--tgi-compat`."),
    Refused("bedrock_compat", "false", "Bedrock's answers are not offered."),
    NoEffect("enable_streaming",
             "Has no effect with rolling batches in DJL either; a request says `stream`."),
    SetsOption("model_loading_timeout", "startup-timeout",
               "`--startup-timeout`, in seconds without progress."),
    NoEffect("predict_timeout",
             "A request that waits keeps its place until it runs; the queue is bounded by "
             "`job_queue_size` instead."),
    NoEffect("max_output_size", "`max_new_tokens` bounds an answer."),
    NoEffect("waiting_steps",
             "New prompts are computed in chunks and do not stall running requests."),
    NoEffect("parallel_loading", "All ranks load at the same time."),
    Refused("pipeline_parallel_degree", "1", kOneHost),
    Refused("cluster_size", "1", kOneHost),
    Refused("entryPoint|entry_point|entrypoint",
            "djl_python.huggingface|djl_python.rolling_batch|djl_python.lmi_vllm.vllm_async_"
            "service|djl_python.transformers_neuronx|djl_python.deepspeed|djl_python.lmi_trtllm",
            kNoPython),
    Refused("handler", "handle", kNoPython),
    NoEffect("pythonExecutable|python_executable", kNoPython),
    NoEffect("enable_venv", kNoPython),
    NoEffect("env", kNoPython),
    NoEffect("async_mode", "Requests are always served side by side."),
    NoEffect("enable_lora", kNoAdapters),
    Refused("adapters", "", kNoAdapters),
    NoEffect("max_loras|max_lora_rank|max_cpu_loras|lora_dtype|fully_sharded_loras|lora_extra_"
             "vocab_size",
             kNoAdapters),
    Refused("draft_model_id|speculative_draft_model", "", kNoDrafts),
    Refused("spec_length", "0", kNoDrafts),
    NoEffect("speculative_length|draft_model_tp_size|record_acceptance_rate|speculative_telemetry",
             kNoDrafts),
    // Keys of the Hugging Face handler.
    Refused("task", "text-generation|auto", "Text generation only."),
    NoEffect("device_map", "`--device` and `--num-shard` choose the devices."),
    Refused("device_id", "-1", "Choose devices with CUDA_VISIBLE_DEVICES."),
    NoEffect("low_cpu_mem_usage", "Each rank reads only its own part of the files."),
    Refused("quantize|quantization", "none", kNoQuantized),
    Refused("load_in_8bit|load_in_4bit", "false", kNoQuantized),
    NoEffect("disable_flash_attn",
             "Padding never enters the arithmetic, so the results are the same either way."),
    NoEffect("multi_gpu", "`tensor_parallel_degree` sets it."),
    // Keys of lmi-dist and vLLM.
    SetsOption("max_rolling_batch_prefill_tokens", "max-batch-prefill-tokens",
               "`--max-batch-prefill-tokens`."),
    SetsOption("max_num_batched_tokens", "max-step-tokens", "`--max-step-tokens`."),
    SetsOption("max_num_seqs", "max-batch-size", "`--max-batch-size`."),
    SetsOption("max_model_len", "max-total-tokens", "`--max-total-tokens`."),
    SetsOption("enable_prefix_caching", "prefix-caching", "`--prefix-caching`; on."),
    Applies("enable_chunked_prefill", &effects::ChunkedPrefill,
            "`--prefill chunked` (the default) or `whole`."),
    SetsOption("max_logprobs", "max-top-n-tokens", "`--max-top-n-tokens`."),
    NoEffect("gpu_memory_utilization", "On a CPU `--kv-cache-memory` sets the size of the cache."),
    NoEffect("enforce_eager", "There are no graphs on a CPU."),
    Refused("load_format", "auto|safetensors", "Weights are read from safetensors files."),
    Refused("tokenizer_mode", "auto|fast", "Tokenizers are read from tokenizer.json."),
    Refused("cpu_offload_gb_per_gpu", "0|0.0", "Weights stay where they are computed."),
    Refused("disable_sliding_window", "false", "A model is computed as its config.json says."),
    Refused("limit_mm_per_prompt", "", "Text only."),
    NoEffect("chat_template|chat_template_content_format",
             "The template in the model's folder is used."),
    NoEffect("enable_auto_tool_choice|tool_call_parser|enable_reasoning|reasoning_parser",
             "Tools are part of the chat routes."),
    // Keys of the server.
    OfServer(Applies("job_queue_size", &effects::JobQueueSize,
                     "Requests that may wait for the running batch; one more is answered with 503 "
                     "at once. 1000 when unset. Sets `--max-concurrent-requests` to the sum of "
                     "this and the batch size (`max_rolling_batch_size` or `--max-batch-size`).")),
    OfServer(Applies("batch_size", &effects::BatchSize,
                     "1: rolling batches. More: static batches of at most so many; does not count "
                     "where `rolling_batch` is given and is not `disable`.")),
    OfServer(SetsOption("minWorkers|min_workers|gpu.minWorkers|cpu.minWorkers", "num-replicas",
                        "`--num-replicas`.")),
    OfServer(NoEffect(
        "maxWorkers|max_workers|gpu.maxWorkers|cpu.maxWorkers",
        "`minWorkers` copies of the model run; their number does not change with the load.")),
    OfServer(SetsOption("max_request_size", "payload-limit",
                        "`--payload-limit`, in bytes; 64 MiB when unset.")),
    OfServer(Applies("inference_address", &effects::InferenceAddress,
                     "`--hostname` and `--port`; http://0.0.0.0:8080 when unset.")),
    OfServer(NoEffect("management_address|load_models|model_store|plugin_folder",
                      "One model is served, and nothing is loaded while running.")),
    OfServer(NoEffect("max_batch_delay", "Requests do not wait for a batch.")),
    OfServer(NoEffect("max_idle_time", "Idle processes do nothing.")),
    OfServer(NoEffect("load_on_devices", "See `device_id`.")),
    OfServer(NoEffect("log_request_metric|metrics_aggregation", "`GET /metrics` always has them.")),
    OfServer(NoEffect("retry_threshold", "Shards that end are started again.")),
    OfServer(NoEffect("chunked_read_timeout", "A stream is kept alive while the model works.")),
    OfServer(Refused("bad_request_http_code|timeout_http_code", "400", kFixedCodes)),
    OfServer(Refused("wlm_error_http_code|throttle_error_http_code", "503", kFixedCodes)),
    OfServer(Refused("server_error_http_code", "500", kFixedCodes)),
    OfServer(Refused("request_id_header_key", "x-request-id", "The header is X-Request-Id.")),
};

constexpr std::string_view kOptionPrefix = "option.";

// Whether `text` is one of `names` ("a|b") in any case.
bool IsOneOf(std::string_view text, std::string_view names) {
  return std::ranges::any_of(options::Pieces(names), [&](std::string_view name) {
    return absl::EqualsIgnoreCase({name.data(), name.size()}, {text.data(), text.size()});
  });
}

std::string Written(const ServingKey& key, std::string_view name) {
  return (key.option ? std::string(kOptionPrefix) : std::string()) + std::string(name);
}

std::string_view UseName(KeyUse use) {
  if (use == kMapped) return "yes";
  return use == kNoEffect ? "accepted, no effect" : "refused";
}

void AppendRows(std::string& page, bool option) {
  page += "\n| Key | Taken | Here |\n|---|---|---|\n";
  for (const ServingKey& key : kKeys) {
    if (key.option != option) continue;
    std::string names;
    for (std::string_view name : options::Pieces(key.name)) {
      names += (names.empty() ? "`" : ", `") + Written(key, name) + "`";
    }
    page += "| " + names + " | " + std::string(UseName(key.use));
    if (!key.neutral.empty()) {
      std::string neutral;
      for (std::string_view value : options::Pieces(key.neutral)) {
        neutral += (neutral.empty() ? "`" : ", `") + std::string(value) + "`";
      }
      page += ", but for " + neutral;
    }
    page += " | " + std::string(key.text) + " |\n";
  }
}

}  // namespace

std::span<const ServingKey> ServingKeys() { return kKeys; }

const ServingKey* FindServingKey(std::string_view key) {
  const bool option = key.starts_with(kOptionPrefix);
  const std::string_view bare = option ? key.substr(kOptionPrefix.size()) : key;
  for (const ServingKey& row : kKeys) {
    if (row.option == option && IsOneOf(bare, row.name)) return &row;
  }
  return nullptr;
}

std::string NearestServingKey(std::string_view key) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, key.size() / 4) + 1;
  for (const ServingKey& row : kKeys) {
    for (std::string_view name : options::Pieces(row.name)) {
      const std::string written = Written(row, name);
      const std::size_t distance = EditDistance(key, written);
      if (distance >= least) continue;
      least = distance;
      best = written;
    }
  }
  return best;
}

KeyEffect ApplyServingKey(const ServingKey& key, const std::string& value) {
  KeyEffect effect;
  switch (key.use) {
    case kMapped:
      if (key.apply != nullptr) return key.apply(value);
      effect.options.emplace_back(key.to, value);
      break;
    case kNoEffect:
      break;
    case kRefused:
      if (!IsOneOf(value, key.neutral)) effect.error = "is not taken. " + std::string(key.text);
      break;
  }
  return effect;
}

std::string ServingKeysPage() {
  std::string page = R"(# serving.properties

Written from the table in `launcher/serving/serving_keys.cc`; do not edit.

`penstock-launcher --serving-properties DIR_OR_FILE` reads a file of DJL-Serving. The server then
listens on 0.0.0.0:8080, and `POST /invocations` is DJL's (`--api-profile djl`). A folder without
the file is a model's folder. With `--api-profile djl` and no path, the launcher reads
`/opt/ml/model`.

The syntax is Java's. A comment may follow a value (`key=value  # why`; `\#` is a literal one). Each
`option.name` may also be set by the variable `OPTION_NAME`, each other key by `SERVING_NAME`. The
file has precedence over them, and `PENSTOCK_*` variables and the command line over the file.
`HF_MODEL_ID`, `HF_REVISION`, `HF_TRUST_REMOTE_CODE` and `TENSOR_PARALLEL_DEGREE` are understood,
too.

An unknown key is named in a warning and has no effect, since DJL passes such keys to its handler.
So is an unknown `OPTION_NAME`. A value that cannot be supported stops the start with the reason. An
unknown `SERVING_NAME` is ignored, because other programs use that prefix, too. A cluster sets
variables like `SERVING_PORT` for a service of that name.

## Options
)";
  AppendRows(page, true);
  page += "\n## Keys of the server\n";
  AppendRows(page, false);
  return page;
}

}  // namespace penstock::launcher
