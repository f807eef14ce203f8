#include "tools/replay/trace_rows.h"

namespace penstock::replay {
namespace {

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kTraceRows[] = {
    OptionSpec("machine", Type::kString, "h100-llama-3-8b-tp1",
               "Machine whose step times are simulated: MACHINE-MODEL-tpN[-fp8][-generic], for "
               "example a100-llama-3-70b-tp4."),
    OptionSpec(
        "requests", options::Int(1, 2000000), "",
        "Number of rows, drawn with replacement. Unset: the trace as it is; 1000 for uniform."),
    OptionSpec("rate", options::Float(0, 1000000), "0",
               "Poisson arrivals per second. 0: the trace's own times."),
    OptionSpec("time-scale", options::Float(0, 1000000), "1",
               "Factor on the trace's own times; 0: everything at once."),
    OptionSpec("spread-stamps", options::Duration(0, 3600), "3s",
               "Requests with one stamp are spread until the next one, at most this far "
               "(Mooncake's traces are stamped about every 3 s)."),
    OptionSpec("prompt-tokens", Type::kString, "32-512", "LOW-HIGH of uniform prompt lengths."),
    OptionSpec("output-tokens", Type::kString, "1-128", "LOW-HIGH of uniform output lengths."),
    OptionSpec("whole-blocks", options::Int(1, 4096), "",
               "Tokens of each block id of the trace. One more token follows each prompt, so that "
               "hits are counted in blocks."),
    OptionSpec("max-output", options::Int(1, 1048576), "",
               "Length to which every output is cut. Unset: as in the trace."),
    OptionSpec("declared-output", options::Int(1, 1048576), "",
               "The max_new_tokens that every request declares; the true end is found like a stop "
               "string's. Unset: the true length."),
    OptionSpec("seed", options::Int(0), "1", "Seed of everything that is drawn."),
    OptionSpec("num-replicas", options::Int(1, 4096), "1", "Replica groups."),
    OptionSpec("blocks", options::Int(1, 16777216), "25000",
               "KV blocks of a group (25,000 of 16 tokens: Llama-3-8B on 80 GB)."),
    OptionSpec("block-size", options::Int(1, 4096), "16", "Tokens per block."),
    OptionSpec("slots", options::Int(1, 65536), "256", "Sequences that a group holds at once."),
    OptionSpec("max-sequence-length", options::Int(1, 16777216), "1048576",
               "Longest sequence of a group."),
    OptionSpec("max-step-tokens", options::Int(1, 16777216), "512", "Token budget of one step."),
    OptionSpec("max-batch-prefill-tokens", options::Int(1, 16777216), "",
               "Maximum number of prefill tokens in one step. Unset: no limit."),
    OptionSpec("max-batch-total-tokens", options::Int(1, 4294967295), "",
               "Maximum number of tokens of running requests. Unset: the blocks."),
    OptionSpec("max-batch-size", options::Int(1, 65536), "",
               "Maximum number of requests in the running batch. Unset: the slots."),
    OptionSpec("max-waiting-requests", options::Int(1, 16777216), "2000000",
               "Maximum number of waiting requests."),
    OptionSpec("pipeline-depth", options::Int(1, 16), "2", "Plans in flight per group."),
    OptionSpec("batching", options::OneOf("none|static|continuous"), "continuous",
               "How the batch is formed."),
    OptionSpec("compare", options::OneOf("none|static|continuous"), "",
               "trace: a second way to form the batch, run on the same trace, printed after the "
               "first and drawn beside it (--svg)."),
    OptionSpec(
        "static-grouping", options::OneOf("window|equal"), "window",
        "Requests that share a static batch: all that wait, or only those of equal lengths."),
    OptionSpec("prefill", options::OneOf("chunked|whole"), "chunked",
               "Whether a prompt may be computed in chunks over several steps."),
    OptionSpec(
        "target-inter-token-ms", options::Int(1, 60000), "",
        "Longest step in milliseconds while requests decode; the cost model shortens prefill "
        "chunks to keep it. Unset: no limit."),
    OptionSpec("admission", options::OneOf("guaranteed|optimistic|mixed"), "guaranteed",
               "Memory that a request reserves: its worst case (guaranteed) or its expected output "
               "(optimistic). mixed is guaranteed for requests that limit their output, else "
               "optimistic."),
    OptionSpec("order", options::OneOf("fcfs|longest-prefix|priority|shortest-predicted|learned"),
               "fcfs", "Which waiting request is next."),
    OptionSpec("placement", options::OneOf("prefix-match|least-loaded|round-robin"), "prefix-match",
               "Which replica group takes the next request."),
    OptionSpec("placement-load-weight", options::Float(0, 1000), "0.25",
               "Weight of a group's backlog against a match, with --placement prefix-match."),
    OptionSpec("max-overtakes", options::Int(1, 16777216), "",
               "How often a waiting request may be overtaken. Unset: --max-waiting-requests."),
    OptionSpec("starvation-steps", options::Int(0, 16777216), "1000",
               "With --order learned: steps after which a waiting request is next; 0: never."),
    OptionSpec(
        "starvation-quantum", options::Int(1, 16777216), "10",
        "With --order learned: tokens after which such a request gives its place to the next "
        "such request."),
    OptionSpec("forecast", Type::kBool, "false",
               "Requests carry their true output length as the prediction."),
    OptionSpec("forecast-noise", options::Float(0, 100), "0",
               "With --forecast: the error of the predictions."),
    OptionSpec("forecast-error", options::OneOf("length|rank"), "length",
               "With --forecast-noise: length multiplies true lengths by e^(noise * z), rank adds "
               "noise * z to their ranks between 0 and 1; z has mean 0 and variance 1."),
    OptionSpec("padded", Type::kBool, "false",
               "Request-level batches of the classic servers: ended rows are computed until the "
               "longest one is done, and all answers are given then."),
    OptionSpec("slo-ttft", options::Duration(0, 86400), "",
               "Objective for the time from arrival to first token."),
    OptionSpec("slo-gap", options::Duration(0, 86400), "",
               "Objective for the longest time between two tokens of a request."),
    OptionSpec("slo-normalised", options::Duration(0, 86400), "",
               "Objective for the end-to-end time per output token."),
    OptionSpec("attainment", options::Float(0, 1), "0.9",
               "search: the share of requests that must meet the objective (0.5 with "
               "--slo-normalised bounds the median)."),
    OptionSpec("min-rate", options::Float(1e-06, 1000000), "0.01", "search: lowest rate tried."),
    OptionSpec("max-rate", options::Float(1e-06, 1000000), "10000", "search: highest rate tried."),
    OptionSpec("precision", options::Float(0.0001, 1), "0.01",
               "search: relative width at which the bisection ends."),
    OptionSpec("json", Type::kPath, "",
               "File for the summary as JSON; - for standard output in place of the table."),
    OptionSpec("csv", Type::kPath, "", "File with one line per request."),
    OptionSpec("svg", Type::kPath, "",
               "File for a picture of the latencies and of the course of the run."),
};

}  // namespace

std::span<const OptionSpec> TraceRows() { return kTraceRows; }

}  // namespace penstock::replay
