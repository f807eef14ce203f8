// Options of text-generation-inference that Penstock itself does not have. They are refused by
// name, accepted without effect, or turned into other options by launcher/tgi_rules.h.
#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kTgiRows[] = {
    OptionSpec("sharded", OneOf("true|false"), "",
               "true: --num-shard ranks, or one per usable GPU, and at least two; false: one rank "
               "unless --num-shard is given; unset: --num-shard ranks.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec("cuda-graphs", IntList(0), "", "Batch sizes that have a CUDA graph.",
               {.advanced = true,
                .components = kLauncher,
                .harmless = "0",
                .no_effect = "CPU shards have no graphs, and CUDA shards choose the sizes"}),
    OptionSpec(
        "prometheus-port", Int(0, 65535), "", "Second port for /metrics.",
        {.advanced = true, .no_effect = "/metrics is on --port, as in text-generation-inference"}),
    OptionSpec("master-addr", Type::kString, "", "Address of the rendezvous of ranks.",
               {.advanced = true,
                .components = kLauncher,
                .no_effect = "ranks find each other by their sockets, not by an address"}),
    OptionSpec("master-port", Int(0, 65535), "", "Port of the rendezvous of ranks.",
               {.advanced = true,
                .components = kLauncher,
                .no_effect = "ranks find each other by their sockets, not by an address"}),
    OptionSpec(
        "weights-cache-override", Type::kPath, "", "Folder of the weights alone.",
        {.advanced = true,
         .components = kLauncher,
         .refusal =
             "give --model-id the folder that holds config.json, tokenizer.json and the weights"}),
    OptionSpec("disable-custom-kernels", Type::kBool, "false", "The same as --backend reference.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec(
        "cuda-memory-fraction", Float(0.01, 1), "1.0",
        "Share of a GPU's memory that a shard may use; ignored, with a warning, without a GPU.",
        {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec(
        "rope-scaling", Type::kString, "", "Scaling of positions.",
        {.advanced = true,
         .components = kLauncher,
         .refusal = "write rope_scaling into the model's config.json, from where it is read"}),
    OptionSpec(
        "rope-factor", Type::kFloat, "", "Factor of --rope-scaling.",
        {.advanced = true,
         .components = kLauncher,
         .refusal = "write rope_scaling into the model's config.json, from where it is read"}),
    OptionSpec(
        "ngrok", Type::kBool, "false", "Tunnel through ngrok.",
        {.advanced = true,
         .refusal =
             "there is no tunnel in the server; run the tunnel's own program in front of --port",
         .harmless = "false"}),
    OptionSpec(
        "ngrok-authtoken", Type::kString, "", "Token for --ngrok.",
        {.advanced = true,
         .refusal =
             "there is no tunnel in the server; run the tunnel's own program in front of --port",
         .secret = true}),
    OptionSpec(
        "ngrok-edge", Type::kString, "", "Edge for --ngrok.",
        {.advanced = true,
         .refusal =
             "there is no tunnel in the server; run the tunnel's own program in front of --port"}),
    OptionSpec("usage-stats", OneOf("on|off|no-stack"), "", "Usage statistics for the vendor.",
               {.advanced = true, .harmless = "off", .no_effect = "no statistics are sent"}),
    OptionSpec("enable-prefill-logprobs", Type::kBool, "false",
               "Return log-probabilities of prompts with `decoder_input_details`.",
               {.advanced = true,
                .components = kLauncher,
                .harmless = "true|false",
                .no_effect = "log-probabilities of prompts are always returned"}),
    OptionSpec("max-image-fetch-size", Int(0), "", "Largest image that is fetched for a request.",
               {.advanced = true, .no_effect = "nothing is ever fetched for a request"}),
    OptionSpec("master-shard-uds-path", Type::kPath, "",
               "Socket of rank 0, PREFIX-0; the same as --shard-uds-path PREFIX.",
               {.advanced = true, .components = kRouter}),
};

}  // namespace

std::span<const OptionSpec> TgiRows() { return kTgiRows; }

}  // namespace penstock::options
