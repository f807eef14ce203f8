#include "tools/replay/what_if_rows.h"

namespace penstock::replay {
namespace {

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kWhatIfRows[] = {
    OptionSpec("num-replicas", options::Int(1, 4096), "", "Replica groups. Unset: as recorded."),
    OptionSpec("rate-scale", options::Float(0.001, 1000), "1",
               "How many times the recorded requests arrive: 0.5 leaves out every second one at "
               "random, 2 adds a copy of each."),
    OptionSpec("order", options::OneOf("fcfs|longest-prefix|priority|shortest-predicted|learned"),
               "", "Which waiting request is next. Unset: as recorded."),
    OptionSpec("admission", options::OneOf("guaranteed|optimistic|mixed"), "",
               "Memory that a request reserves: its worst case, its expected output, or by whether "
               "it limits its output. Unset: as recorded."),
    OptionSpec("prefill", options::OneOf("chunked|whole"), "",
               "Whether a prompt may be computed over several steps. Unset: as recorded."),
    OptionSpec("placement", options::OneOf("prefix-match|least-loaded|round-robin"), "",
               "Which replica group takes the next request. Unset: as recorded."),
    OptionSpec("placement-load-weight", options::Float(0, 1000), "",
               "Weight of a group's backlog against a match. Unset: as recorded."),
    OptionSpec("max-step-tokens", options::Int(1, 16777216), "",
               "Token budget of one step. Unset: as recorded."),
    OptionSpec("max-batch-prefill-tokens", options::Int(1, 16777216), "",
               "Maximum number of prefill tokens in one step. Unset: as recorded."),
    OptionSpec("max-batch-total-tokens", options::Int(1, 4294967295), "",
               "Maximum number of tokens of running requests. Unset: as recorded."),
    OptionSpec("max-batch-size", options::Int(1, 65536), "",
               "Maximum number of requests in the running batch. Unset: as recorded."),
    OptionSpec("max-waiting-requests", options::Int(1, 16777216), "",
               "Maximum number of waiting requests. Unset: as recorded."),
    OptionSpec("max-overtakes", options::Int(1, 16777216), "",
               "How often a waiting request may be overtaken. Unset: as recorded."),
    OptionSpec("starvation-steps", options::Int(0, 1000000000), "",
               "Order learned: steps after which a waiting request is due. Unset: as recorded."),
    OptionSpec("starvation-quantum", options::Int(1, 1000000000), "",
               "Order learned: tokens before a request that was due gives its place to another. "
               "Unset: as recorded."),
    OptionSpec("target-inter-token-ms", options::Int(1, 60000), "",
               "Longest step in milliseconds while requests decode. Unset: as recorded."),
    OptionSpec("blocks", options::Int(1, 16777216), "",
               "KV blocks of a group. Unset: as recorded."),
    OptionSpec("explain", options::Int(1), "",
               "Number of a request, as GET /requests/{id} and `run --print` show it: where its "
               "time went, and what each of the usual changes would do to it."),
    OptionSpec("slo-ttft", options::Duration(0, 86400), "",
               "Objective for the time from arrival to first token."),
    OptionSpec("slo-gap", options::Duration(0, 86400), "",
               "Objective for the longest time between two tokens of a request."),
    OptionSpec("slo-normalised", options::Duration(0, 86400), "",
               "Objective for the end-to-end time per output token."),
    OptionSpec("seed", options::Int(0), "1", "Seed of what --rate-scale draws."),
    OptionSpec("json", Type::kPath, "",
               "File for the figures as JSON; - for standard output in place of the table."),
    OptionSpec("page", Type::kPath, "", "File for a page (HTML) with the table and plots."),
};

}  // namespace

std::span<const OptionSpec> WhatIfRows() { return kWhatIfRows; }

}  // namespace penstock::replay
