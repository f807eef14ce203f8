#include "tools/plan/plan_rows.h"

namespace penstock::plan {
namespace {

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kPlanRows[] = {
    OptionSpec("model", Type::kString, "",
               "Folder with config.json, or a named shape: llama-3-8b, llama-3-70b.",
               {.required = options::kTool}),
    OptionSpec("machines", Type::kPath, "",
               "YAML file with the machine types: step times, count, price, watts "
               "(docs/how-to/plan.md).",
               {.required = options::kTool}),
    OptionSpec("trace", Type::kString, "uniform",
               "Request trace, log of --record, or the word uniform."),
    OptionSpec("requests", options::Int(10, 2000000), "",
               "Number of rows, drawn with replacement. Unset: the first 4,000 of the trace; 2,000 "
               "of uniform."),
    OptionSpec("prompt-tokens", Type::kString, "32-512", "LOW-HIGH of uniform prompt lengths."),
    OptionSpec("output-tokens", Type::kString, "1-128", "LOW-HIGH of uniform output lengths."),
    OptionSpec("declared-output", options::Int(1, 1048576), "",
               "The max_new_tokens that every request declares; the true end is found like a stop "
               "string's. Unset: the true length."),
    OptionSpec("rate", options::Float(0, 1000000), "0",
               "Requests per second that --objective cost or power must serve. 0: the rate of the "
               "trace; without times, each plan at its highest rate."),
    OptionSpec("arrivals", options::OneOf("auto|trace|poisson"), "auto",
               "Arrivals at a rate: the trace's own times, stretched, or Poisson. auto takes the "
               "trace's if it has times."),
    OptionSpec("objective", options::OneOf("throughput|cost|power"), "throughput",
               "What to plan for: the highest rate of all machines, or the least price or power."),
    OptionSpec("slo-ttft", options::Duration(0, 86400), "",
               "Objective for the time from arrival to first token."),
    OptionSpec("slo-inter-token", options::Duration(0, 86400), "",
               "Objective for the mean time between two tokens of a request."),
    OptionSpec("slo-gap", options::Duration(0, 86400), "",
               "Objective for the longest time between two tokens of a request."),
    OptionSpec("percentile", options::Float(1, 100), "90",
               "Share of requests, in per cent, that must meet all objectives."),
    OptionSpec("tensor-parallel", options::IntList(1, 64), "1,2,4,8",
               "Ranks of a group that are tried."),
    OptionSpec("budgets", options::IntList(1, 16777216), "256,512,1024,2048",
               "Token budgets of a step that are tried."),
    OptionSpec("orders", Type::kList, "fcfs",
               "Orders that are tried: fcfs, longest-prefix, shortest-predicted (with true "
               "lengths)."),
    OptionSpec("admissions", Type::kList, "guaranteed,optimistic",
               "Admissions that are tried: guaranteed, optimistic, mixed."),
    OptionSpec("max-batch-size", options::Int(1, 65536), "128",
               "Maximum number of requests in the running batch of a group."),
    OptionSpec("threads", options::Int(1, 256), "2", "Threads of the search."),
    OptionSpec("seed", options::Int(0), "1", "Seed of everything that is drawn."),
    OptionSpec("changes", Type::kBool, "true", "Look for what would change the choice."),
    OptionSpec("json", Type::kPath, "",
               "File for the plans as JSON; - for standard output in place of the text."),
    OptionSpec("write", Type::kPath, "",
               "File for the configuration of the choice, for penstock-launcher --config; - for "
               "standard output."),
};

}  // namespace

std::span<const OptionSpec> PlanRows() { return kPlanRows; }

}  // namespace penstock::plan
