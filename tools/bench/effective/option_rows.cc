#include "tools/bench/effective/option_rows.h"

namespace penstock::bench::effective {
namespace {

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kRows[] = {
    OptionSpec("numsamples", options::Int(1, 1e6), "100", "Requests of a run."),
    OptionSpec("prompt", Type::kString, "",
               "Send this one prompt, with --numtokens, and print the completion."),
    OptionSpec("numtokens", options::Int(1, 1e6), "10", "Tokens to ask for with --prompt."),
    OptionSpec("preset", options::OneOf("recorded|readme|head"), "recorded",
               "Version of the original client: recorded (bursts of 5; 5, 10 ... 145 tokens), "
               "readme (one by one; normal, 1 to 200) or head (one by one; 1, 25 or 100)."),
    OptionSpec("numtokens-range", Type::kList, "",
               "Draw the tokens of a request from this list instead of as the preset does."),
    OptionSpec("selection", options::OneOf("random|descend"), "random",
               "descend: the longest requests come first."),
    OptionSpec("wait", options::Float(0.000001, 3600), "1",
               "Preset head: the longest gap between two requests, in seconds."),
    OptionSpec("seed", options::Int(0), "1",
               "Seed of arrivals, lengths and sampling. Repeat k has seed + k - 1."),
    OptionSpec("repeats", options::Int(1, 10000), "1",
               "Runs of each mode. Each run has a new trace, which is the same for all modes."),
    OptionSpec("rate", options::Float(0, 1e6), "0",
               "Requests per second. 0: --load times the rate that nobatch serves, or the rate of "
               "the preset if nobatch is not among the modes."),
    OptionSpec("load", options::Float(0.01, 1000), "2.5",
               "The rate as a multiple of the rate that nobatch serves, which is measured first."),
    OptionSpec("modes", Type::kList, "nobatch,static,dynamic",
               "Modes to start servers for: nobatch, static (equal lengths, as the original), "
               "static-window (all that wait), dynamic."),
    OptionSpec("launcher", Type::kPath, "",
               "penstock-launcher. Unset: the one beside this program."),
    OptionSpec("attach", Type::kList, "", "Running servers to measure, as MODE=URL."),
    OptionSpec("records", Type::kList, "",
               "Input logs of these servers (--record) as MODE=FILE, for the timeline."),
    OptionSpec("url", Type::kString, "",
               "A running server. Unset: IP of the environment or of --env-file, port 8500."),
    OptionSpec("env-file", Type::kPath, ".env", "File with a line IP=ADDRESS."),
    OptionSpec("api-key", Type::kString, "", "Bearer token."),
    OptionSpec("timeout", options::Duration(0.001, 86400), "1000s", "Deadline of one request."),
    OptionSpec("output", Type::kPath, "",
               "Folder for the table, the CSV files and the pictures. Unset: effective-batching "
               "when modes are compared, none for one server."),
    OptionSpec("check", Type::kBool, "false",
               "Exit with 1 if an expectation of the comparison is not met."),
};

}  // namespace

std::span<const OptionSpec> OptionRows() { return kRows; }

}  // namespace penstock::bench::effective
