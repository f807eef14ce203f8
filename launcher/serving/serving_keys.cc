#include "launcher/serving/serving_keys.h"

#include <algorithm>

#include "common/options/table.h"
#include "launcher/serving/key_effects.h"

namespace penstock::launcher {
namespace {

using enum KeyUse;

constexpr std::string_view kNoPython =
    "Penstock runs no Python: there is no handler to choose or to set up.";
constexpr std::string_view kNoAdapters = "Adapters (LoRA) are not served.";
constexpr std::string_view kNoDrafts = "There is no speculative decoding with a draft model.";
constexpr std::string_view kNoQuantized =
    "Weights are read from checkpoints that are not quantized; `--quantize int8` makes them a byte "
    "each while loading.";
constexpr std::string_view kOneHost = "A model is divided among the ranks of one host.";
constexpr std::string_view kFixedCodes =
    "The codes of DJL are answered: 400, 424, 500, 503. They cannot be chosen.";

constexpr ServingKey kKeys[] = {
    // Keys of the seq-scheduler document.
    {.name = "engine",
     .option = false,
     .use = kNoEffect,
     .text = "Penstock is the engine, whatever is named."},
    {.name = "mpi_mode", .use = kNoEffect, .text = "The launcher starts the ranks; no MPI."},
    {.name = "model_id",
     .apply = &effects::ModelId,
     .text = "`--model-id`: a folder (also relative to that of the file) or a Hugging Face id. "
             "Unset: the folder of the file. `s3://` and `djl://` are refused: download the model "
             "first."},
    {.name = "model_dir", .to = "model-id", .text = "`--model-id`, as `model_id`."},
    {.name = "revision", .to = "revision", .text = "`--revision`."},
    {.name = "tensor_parallel_degree",
     .apply = &effects::TensorParallel,
     .text = "`--num-shard`. `-1` and `max` are 1 on a CPU, whose one rank uses all cores."},
    {.name = "dtype|data_type",
     .apply = &effects::DType,
     .text =
         "`--dtype`: `fp32`, `bf16`, `auto`. `fp16` is `auto` on a CPU, which has no arithmetic "
         "of that type: a bfloat16 checkpoint is computed as it is, one of float16 in float32, "
         "which holds it exactly. The type is printed at the start. `int8` is refused."},
    {.name = "trust_remote_code",
     .use = kNoEffect,
     .text = "Code of a model repository is never run. Known architectures need none; others are "
             "refused by name."},
    {.name = "rolling_batch",
     .apply = &effects::RollingBatch,
     .text =
         "`scheduler`: the documented splitting rule (`--split sparsity`), the padded KV layout "
         "and contrastive search. `auto`, `vllm`, `lmi-dist`, `trtllm`, `deepspeed`, `neuronx`: "
         "continuous batching, which is the default. `disable`: `--batching none`, or static "
         "batches of `batch_size`."},
    {.name = "max_rolling_batch_size",
     .to = "max-batch-size",
     .text = "`--max-batch-size`; 32 when unset."},
    {.name = "max_sparsity", .to = "max-sparsity", .text = "`--max-sparsity`, 0 to 1; 0.33."},
    {.name = "max_splits", .to = "max-splits", .text = "`--max-splits`, at least 1; 3."},
    {.name = "decoding_strategy",
     .apply = &effects::DecodingStrategy,
     .text = "`--decoding-strategy`: `greedy`, `sample` or `contrastive`, for requests that name "
             "none."},
    // Keys of all backends.
    {.name = "output_formatter",
     .apply = &effects::OutputFormatter,
     .text = "`--output-formatter`: `json`, `jsonlines`, `sse` (their `_chat` forms are the same "
             "here, since chats have an interface of their own). Custom functions are refused."},
    {.name = "tgi_compat", .to = "tgi-compat", .text = "`--tgi-compat`."},
    {.name = "bedrock_compat",
     .use = kRefused,
     .neutral = "false",
     .text = "Bedrock's answers are not offered."},
    {.name = "enable_streaming",
     .use = kNoEffect,
     .text = "Has no effect with rolling batches in DJL either; a request says `stream`."},
    {.name = "model_loading_timeout",
     .to = "startup-timeout",
     .text = "`--startup-timeout`, in seconds without progress."},
    {.name = "predict_timeout",
     .use = kNoEffect,
     .text = "A request that waits keeps its place until it runs; the queue is bounded by "
             "`job_queue_size` instead."},
    {.name = "max_output_size", .use = kNoEffect, .text = "`max_new_tokens` bounds an answer."},
    {.name = "waiting_steps",
     .use = kNoEffect,
     .text = "New prompts are computed in chunks and do not stall running requests."},
    {.name = "parallel_loading", .use = kNoEffect, .text = "All ranks load at the same time."},
    {.name = "pipeline_parallel_degree", .use = kRefused, .neutral = "1", .text = kOneHost},
    {.name = "cluster_size", .use = kRefused, .neutral = "1", .text = kOneHost},
    {.name = "entryPoint|entry_point|entrypoint",
     .use = kRefused,
     .neutral =
         "djl_python.huggingface|djl_python.rolling_batch|djl_python.lmi_vllm.vllm_async_"
         "service|djl_python.transformers_neuronx|djl_python.deepspeed|djl_python.lmi_trtllm",
     .text = kNoPython},
    {.name = "handler", .use = kRefused, .neutral = "handle", .text = kNoPython},
    {.name = "pythonExecutable|python_executable", .use = kNoEffect, .text = kNoPython},
    {.name = "enable_venv", .use = kNoEffect, .text = kNoPython},
    {.name = "env", .use = kNoEffect, .text = kNoPython},
    {.name = "async_mode", .use = kNoEffect, .text = "Requests are always served side by side."},
    {.name = "enable_lora", .use = kRefused, .neutral = "false", .text = kNoAdapters},
    {.name = "adapters", .use = kRefused, .text = kNoAdapters},
    {.name = "max_loras|max_lora_rank|max_cpu_loras|lora_dtype|fully_sharded_loras|"
             "lora_extra_vocab_size",
     .use = kNoEffect,
     .text = kNoAdapters},
    {.name = "draft_model_id|speculative_draft_model", .use = kRefused, .text = kNoDrafts},
    {.name = "spec_length", .use = kRefused, .neutral = "0", .text = kNoDrafts},
    {.name = "speculative_length|draft_model_tp_size|record_acceptance_rate|speculative_telemetry",
     .use = kNoEffect,
     .text = kNoDrafts},
    // Keys of the Hugging Face handler.
    {.name = "task",
     .use = kRefused,
     .neutral = "text-generation|auto",
     .text = "Text generation only."},
    {.name = "device_map", .use = kNoEffect, .text = "`--device` and `--num-shard` say where."},
    {.name = "device_id",
     .use = kRefused,
     .neutral = "-1",
     .text = "Choose devices with CUDA_VISIBLE_DEVICES."},
    {.name = "low_cpu_mem_usage",
     .use = kNoEffect,
     .text = "Each rank reads only its own part of the files."},
    {.name = "quantize|quantization", .use = kRefused, .neutral = "none", .text = kNoQuantized},
    {.name = "load_in_8bit|load_in_4bit",
     .use = kRefused,
     .neutral = "false",
     .text = kNoQuantized},
    {.name = "disable_flash_attn",
     .use = kNoEffect,
     .text = "Padding never enters the arithmetic, so the results are the same either way."},
    {.name = "multi_gpu", .use = kNoEffect, .text = "`tensor_parallel_degree` says it."},
    // Keys of lmi-dist and vLLM.
    {.name = "max_rolling_batch_prefill_tokens",
     .to = "max-batch-prefill-tokens",
     .text = "`--max-batch-prefill-tokens`."},
    {.name = "max_num_batched_tokens", .to = "max-step-tokens", .text = "`--max-step-tokens`."},
    {.name = "max_num_seqs", .to = "max-batch-size", .text = "`--max-batch-size`."},
    {.name = "max_model_len", .to = "max-total-tokens", .text = "`--max-total-tokens`."},
    {.name = "enable_prefix_caching", .to = "prefix-caching", .text = "`--prefix-caching`; on."},
    {.name = "enable_chunked_prefill",
     .apply = &effects::ChunkedPrefill,
     .text = "`--prefill chunked` (the default) or `whole`."},
    {.name = "max_logprobs", .to = "max-top-n-tokens", .text = "`--max-top-n-tokens`."},
    {.name = "gpu_memory_utilization",
     .use = kNoEffect,
     .text = "On a CPU `--kv-cache-memory` says how much the cache takes."},
    {.name = "enforce_eager", .use = kNoEffect, .text = "There are no graphs on a CPU."},
    {.name = "load_format",
     .use = kRefused,
     .neutral = "auto|safetensors",
     .text = "Weights are read from safetensors files."},
    {.name = "tokenizer_mode",
     .use = kRefused,
     .neutral = "auto|fast",
     .text = "Tokenizers are read from tokenizer.json."},
    {.name = "cpu_offload_gb_per_gpu",
     .use = kRefused,
     .neutral = "0|0.0",
     .text = "Weights stay where they are computed."},
    {.name = "disable_sliding_window",
     .use = kRefused,
     .neutral = "false",
     .text = "A model is computed as its config.json says."},
    {.name = "limit_mm_per_prompt", .use = kRefused, .text = "Text only."},
    {.name = "chat_template|chat_template_content_format",
     .use = kNoEffect,
     .text = "The template in the model's folder is used."},
    {.name = "enable_auto_tool_choice|tool_call_parser|enable_reasoning|reasoning_parser",
     .use = kNoEffect,
     .text = "Tools are part of the chat routes."},
    // Keys of the server.
    {.name = "job_queue_size",
     .option = false,
     .apply = &effects::JobQueueSize,
     .text = "Requests that may wait for the running batch; one more is answered with 503 at "
             "once. 1000 when unset. Sets `--max-concurrent-requests` to the sum of this and the "
             "batch size (`max_rolling_batch_size` or `--max-batch-size`)."},
    {.name = "batch_size",
     .option = false,
     .apply = &effects::BatchSize,
     .text = "1: rolling batches. More: static batches of at most so many; does not count where "
             "`rolling_batch` is given and is not `disable`."},
    {.name = "minWorkers|min_workers|gpu.minWorkers|cpu.minWorkers",
     .option = false,
     .to = "num-replicas",
     .text = "`--num-replicas`."},
    {.name = "maxWorkers|max_workers|gpu.maxWorkers|cpu.maxWorkers",
     .option = false,
     .use = kNoEffect,
     .text = "`minWorkers` copies of the model run; their number does not change with the load."},
    {.name = "max_request_size",
     .option = false,
     .to = "payload-limit",
     .text = "`--payload-limit`, in bytes; 64 MiB when unset."},
    {.name = "inference_address",
     .option = false,
     .apply = &effects::InferenceAddress,
     .text = "`--hostname` and `--port`; http://0.0.0.0:8080 when unset."},
    {.name = "management_address|load_models|model_store|plugin_folder",
     .option = false,
     .use = kNoEffect,
     .text = "One model is served, and nothing is loaded while running."},
    {.name = "max_batch_delay",
     .option = false,
     .use = kNoEffect,
     .text = "Nobody waits for a batch."},
    {.name = "max_idle_time",
     .option = false,
     .use = kNoEffect,
     .text = "Idle processes do nothing."},
    {.name = "load_on_devices", .option = false, .use = kNoEffect, .text = "See `device_id`."},
    {.name = "log_request_metric|metrics_aggregation",
     .option = false,
     .use = kNoEffect,
     .text = "`GET /metrics` always has them."},
    {.name = "retry_threshold",
     .option = false,
     .use = kNoEffect,
     .text = "Shards that end are started again."},
    {.name = "chunked_read_timeout",
     .option = false,
     .use = kNoEffect,
     .text = "A stream is kept alive while the model works."},
    {.name = "bad_request_http_code|timeout_http_code",
     .option = false,
     .use = kRefused,
     .neutral = "400",
     .text = kFixedCodes},
    {.name = "wlm_error_http_code|throttle_error_http_code",
     .option = false,
     .use = kRefused,
     .neutral = "503",
     .text = kFixedCodes},
    {.name = "server_error_http_code",
     .option = false,
     .use = kRefused,
     .neutral = "500",
     .text = kFixedCodes},
    {.name = "request_id_header_key",
     .option = false,
     .use = kRefused,
     .neutral = "x-request-id",
     .text = "The header is X-Request-Id."},
};

constexpr std::string_view kOptionPrefix = "option.";

// Calls `visit` for each name of a row until it returns true.
template <class Visitor>
bool AnyName(std::string_view names, Visitor visit) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('|'));
    if (visit(name)) return true;
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return false;
}

bool EqualsAnyCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(x) == lower(y);
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
    AnyName(key.name, [&](std::string_view name) {
      names += (names.empty() ? "`" : ", `") + Written(key, name) + "`";
      return false;
    });
    page += "| " + names + " | " + std::string(UseName(key.use));
    if (!key.neutral.empty()) {
      std::string neutral;
      AnyName(key.neutral, [&](std::string_view value) {
        neutral += (neutral.empty() ? "`" : ", `") + std::string(value) + "`";
        return false;
      });
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
    if (row.option != option) continue;
    if (AnyName(row.name, [&](std::string_view name) { return EqualsAnyCase(name, bare); })) {
      return &row;
    }
  }
  return nullptr;
}

std::string NearestServingKey(std::string_view key) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, key.size() / 4) + 1;
  for (const ServingKey& row : kKeys) {
    AnyName(row.name, [&](std::string_view name) {
      const std::string written = Written(row, name);
      const std::size_t distance = options::EditDistance(key, written);
      if (distance < least) {
        least = distance;
        best = written;
      }
      return false;
    });
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
      if (!AnyName(key.neutral, [&](std::string_view v) { return EqualsAnyCase(v, value); })) {
        effect.error = "is not taken. " + std::string(key.text);
      }
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
