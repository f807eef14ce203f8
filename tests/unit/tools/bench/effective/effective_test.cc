// penstock-bench effective without a server: traces, options, fits, checks, timeline, pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "scheduler/log/input_log.h"
#include "scheduler/scheduler.h"
#include "tools/bench/effective/analysis.h"
#include "tools/bench/effective/latency_svg.h"
#include "tools/bench/effective/options.h"
#include "tools/bench/effective/page.h"
#include "tools/bench/effective/report.h"
#include "tools/bench/effective/steps_svg.h"
#include "tools/bench/effective/timeline.h"
#include "tools/bench/effective/timeline_svg.h"
#include "tools/bench/effective/trace.h"

namespace penstock::bench::effective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// --- Traces

double MeanTokens(const std::vector<TraceRequest>& trace) {
  double sum = 0;
  for (const TraceRequest& request : trace) sum += request.num_tokens;
  return sum / static_cast<double>(trace.size());
}

TEST(Trace, RecordedIsBurstsOfFiveAndTenOfEachLength) {
  const auto trace = MakeTrace({.samples = 290, .rate = 2});
  std::map<std::uint32_t, int> counts;
  for (const TraceRequest& request : trace) ++counts[request.num_tokens];
  EXPECT_EQ(counts.size(), 29u);
  for (const auto& [tokens, count] : counts) {
    EXPECT_EQ(tokens % 5, 0u);
    EXPECT_EQ(count, 10) << tokens;
  }
  EXPECT_EQ(counts.rbegin()->first, 145u);
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (i % 5 != 0) {
      EXPECT_EQ(trace[i].arrival, trace[i - 1].arrival) << i;
    }
  }
  EXPECT_NEAR(trace.back().arrival, 290 / 2.0, 25);  // 2 requests a second
  EXPECT_EQ(trace[7].prompt, "Request 7");
}

TEST(Trace, ReadmeIsNormalWithinItsBounds) {
  const auto trace = MakeTrace({.preset = Preset::kReadme, .samples = 2000});
  const auto [least, most] = std::ranges::minmax(trace, {}, &TraceRequest::num_tokens);
  EXPECT_GE(least.num_tokens, 1u);
  EXPECT_LE(most.num_tokens, 200u);
  EXPECT_NEAR(MeanTokens(trace), 100, 5);
  EXPECT_NEAR(trace.back().arrival, 2000, 100);
}

TEST(Trace, HeadDrawsFromItsListAndDescends) {
  auto trace = MakeTrace({.preset = Preset::kHead, .samples = 300});
  for (const TraceRequest& request : trace) {
    EXPECT_THAT(request.num_tokens, ::testing::AnyOf(1u, 25u, 100u));
  }
  trace = MakeTrace({.preset = Preset::kHead,
                     .samples = 50,
                     .num_tokens = {3, 9},
                     .selection = Selection::kDescend});
  EXPECT_EQ(trace.front().num_tokens, 9u);
  EXPECT_EQ(trace.back().num_tokens, 3u);
  EXPECT_TRUE(std::ranges::is_sorted(trace, std::greater(), &TraceRequest::num_tokens));
}

TEST(Trace, TheSeedDecidesEverythingAndTheRateOnlyStretches) {
  const auto one = MakeTrace({.seed = 4});
  const auto again = MakeTrace({.seed = 4});
  const auto faster = MakeTrace({.rate = 20, .seed = 4});
  const auto other = MakeTrace({.seed = 5});
  bool differs = false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].num_tokens, again[i].num_tokens);
    EXPECT_EQ(one[i].seed, again[i].seed);
    EXPECT_EQ(one[i].num_tokens, faster[i].num_tokens);
    EXPECT_NEAR(one[i].arrival, 10 * faster[i].arrival, 1e-9);
    differs |= one[i].num_tokens != other[i].num_tokens;
  }
  EXPECT_TRUE(differs);
}

// --- Options

CommandLine Read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "effective");
  return ReadCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, TakesTheOriginalsFlags) {
  const auto line = Read({"--numsamples", "7", "--numtokens_range", "1,25", "--selection",
                          "descend", "--wait", "0.5", "--url", "10.0.0.1"});
  ASSERT_TRUE(line.options.ok()) << line.options.status();
  EXPECT_EQ(line.options->shape.samples, 7u);
  EXPECT_THAT(line.options->shape.num_tokens, ElementsAre(1u, 25u));
  EXPECT_EQ(line.options->shape.selection, Selection::kDescend);
  EXPECT_EQ(line.options->address.host, "10.0.0.1");
  EXPECT_EQ(line.options->address.port, 8500);
  EXPECT_FALSE(line.options->launcher_options.has_value());
}

TEST(Options, OptionsAfterTheDashesAreTheLaunchers) {
  const auto line = Read({"--modes", "dynamic,static-window", "--", "--model-id", "x"});
  ASSERT_TRUE(line.options.ok()) << line.options.status();
  EXPECT_THAT(*line.options->launcher_options, ElementsAre("--model-id", "x"));
  EXPECT_THAT(line.options->modes, ElementsAre("dynamic", "static-window"));
  EXPECT_EQ(line.options->output, "effective-batching");
}

TEST(Options, ErrorsNameBadValues) {
  const auto message = [](std::vector<const char*> arguments) {
    return std::string(Read(std::move(arguments)).options.status().message());
  };
  EXPECT_THAT(message({"--modes", "nobach", "--"}),
              HasSubstr("--modes nobach: must be nobatch, static"));
  EXPECT_THAT(message({"--modes", "dynamic"}), HasSubstr("after `--`"));
  EXPECT_THAT(message({"--numtokens-range", "1,0"}), HasSubstr("--numtokens-range 0: must be"));
  EXPECT_THAT(message({"--url", "http://"}), HasSubstr("HOST:PORT"));
  EXPECT_THAT(message({"--url", "host:99999"}), HasSubstr("HOST:PORT"));
  EXPECT_THAT(message({"--attach", "dynamic"}), HasSubstr("MODE=VALUE"));
  EXPECT_THAT(message({"--env-file", "/no/such/file"}),
              HasSubstr("--env-file /no/such/file: must be"));
  EXPECT_THAT(message({"--attach", "dynamic=h:1", "--", "--model-id", "x"}),
              HasSubstr("give one of them"));
}

TEST(Env, ReadsWhatDotenvReads) {
  EXPECT_EQ(FindInEnv("IP=1.2.3.4\n", "IP"), "1.2.3.4");
  EXPECT_EQ(FindInEnv("# IP=9\nOTHER=1\nexport IP = \"h.example\" # ours\r\n", "IP"), "h.example");
  EXPECT_EQ(FindInEnv("IP='a b'", "IP"), "a b");
  EXPECT_EQ(FindInEnv("IP=h # comment", "IP"), "h");
  EXPECT_EQ(FindInEnv("IP=", "IP"), "");
  EXPECT_EQ(FindInEnv("IPX=1", "IP"), std::nullopt);
}

// --- Figures

// A run where a request of n tokens takes latency(n) seconds.
template <class Latency>
ModeRuns Runs(std::string mode, Latency latency, int repeats = 2) {
  ModeRuns runs{std::move(mode), {}};
  for (int r = 0; r < repeats; ++r) {
    TraceRun run;
    for (std::uint32_t n = 5; n <= 145; n += 5) {
      Outcome outcome;
      outcome.num_tokens = n;
      outcome.latency = latency(n) + 0.01 * r;
      outcome.server_latency = outcome.latency;
      outcome.first_token = outcome.latency / 2;
      outcome.tokens = {n, 1, 2};
      run.outcomes.push_back(outcome);
    }
    run.seconds = 100;
    runs.runs.push_back(run);
  }
  return runs;
}

TEST(Analysis, FollowsTheOriginalsFormulas) {
  ModeRuns runs{"nobatch",
                {{{{.server_latency = 2, .num_tokens = 4},
                   {.server_latency = 10, .num_tokens = 10},
                   {.num_tokens = 7, .error = "500"}},
                  7}}};
  const ModeSummary summary = Summarise(runs);
  EXPECT_EQ(summary.requests, 2u);
  EXPECT_EQ(summary.failed, 1u);
  EXPECT_DOUBLE_EQ(summary.original.latency_per_token, 0.75);
  EXPECT_DOUBLE_EQ(summary.original.throughput, 14.0 / 12.0);
  EXPECT_EQ(summary.original.tokens, 14u);
  EXPECT_DOUBLE_EQ(summary.original.elapsed, 12);
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 2);
}

TEST(Analysis, FitsTheLineOverTheBuckets) {
  const ModeSummary summary = Summarise(Runs("dynamic", [](double n) { return 1 + 0.1 * n; }));
  EXPECT_NEAR(summary.line.slope, 0.1, 1e-9);
  EXPECT_NEAR(summary.line.intercept, 1.005, 1e-9);
  EXPECT_NEAR(summary.line.r, 1, 1e-9);
  ASSERT_EQ(summary.buckets.size(), 29u);
  // Two repeats, 0.01 s apart: mean +- 12.706 * 0.00707 / sqrt(2).
  EXPECT_NEAR(summary.buckets[0].high - summary.buckets[0].mean, 12.706 * 0.005, 1e-6);
}

std::vector<bool> Passed(const std::vector<ModeRuns>& runs) {
  std::vector<ModeSummary> summaries;
  for (const ModeRuns& mode : runs) summaries.push_back(Summarise(mode));
  std::vector<bool> passed;
  for (const Check& check : Compare(runs, summaries)) passed.push_back(check.passed);
  return passed;
}

TEST(Compare, ChecksTheExpectedShapes) {
  const auto flat = [](double) { return 20.0; };
  const auto steep = [](double n) { return 20 + 0.1 * n; };
  const auto line = [](double n) { return 0.1 * n; };
  const auto slow = [](double n) { return 0.15 * n; };
  // Answered, same tokens, straight, flat, flat, below, below, longest.
  EXPECT_THAT(Passed({Runs("nobatch", flat), Runs("static", flat), Runs("dynamic", line)}),
              ElementsAre(true, true, true, true, true, true, true, true));
  EXPECT_THAT(Passed({Runs("nobatch", steep), Runs("static", flat), Runs("dynamic", steep)}),
              ElementsAre(true, true, false, false, true, false, false, true));
  EXPECT_THAT(Passed({Runs("nobatch", flat), Runs("static", flat), Runs("dynamic", slow)}),
              ElementsAre(true, true, true, true, true, true, true, false));
}

TEST(Compare, FindsARequestWithOtherTokens) {
  const auto flat = [](double) { return 20.0; };
  auto other = Runs("dynamic", flat);
  other.runs[1].outcomes[3].tokens[1] = 9;
  const std::vector<ModeRuns> runs = {Runs("nobatch", flat), other};
  const auto checks = Compare(runs, {Summarise(runs[0]), Summarise(runs[1])});
  EXPECT_FALSE(checks[1].passed);
  EXPECT_EQ(checks[1].measured, "repeat 2, request 3: nobatch and dynamic differ");
}

// --- Timeline

// Plays a shard to a core and writes the log that a router would: every step takes a second.
class Recorder {
 public:
  explicit Recorder(scheduler::Batching batching) {
    scheduler::Config config;
    config.batching = batching;
    core_ = std::make_unique<scheduler::Scheduler>(config);
    log_ = scheduler::EncodeLogHeader(config);
    scheduler::GroupUp up;
    up.epoch = Epoch(1);
    up.capacity.blocks = 64;
    up.capacity.block_size = 16;
    up.capacity.slots = 8;
    up.capacity.max_sequence_length = 512;
    up.capacity.max_step_tokens = 64;
    Apply(up);
  }

  void Arrive(std::uint64_t id, std::uint32_t tokens) {
    scheduler::Arrival arrival;
    arrival.request = RequestId(id);
    arrival.prompt = {1, 2, 3};
    arrival.max_new_tokens = tokens;
    Apply(arrival);
  }

  // Answers plans until there are none.
  void Run() {
    while (!plans_.empty()) {
      const StepPlan plan = plans_.front();
      plans_.erase(plans_.begin());
      now_ += std::chrono::seconds(1);
      scheduler::StepDone done;
      done.result.epoch = plan.epoch;
      done.result.step = plan.step;
      for (const SequenceStart& start : plan.starts) {
        sequences_[start.slot.value()] = {start.sequence, 0};
      }
      for (const Segment& segment : plan.segments) {
        auto& [sequence, length] = sequences_[segment.slot.value()];
        length += segment.Rows();
        done.result.sequences.push_back(
            {segment.slot, sequence, {{7, 0, {}}}, length, ShardFinish::kNone, "", {}});
      }
      Apply(done);
    }
  }

  const std::string& log() const { return log_; }

 private:
  template <class What>
  void Apply(What what) {
    const scheduler::Input input{now_, std::move(what)};
    log_ += scheduler::EncodeInput(input);
    scheduler::Outputs out;
    core_->Apply(input, out);
    for (const scheduler::PlanOut& plan : out.plans) plans_.push_back(plan.plan);
  }

  std::unique_ptr<scheduler::Scheduler> core_;
  std::string log_;
  Time now_ = Time(std::chrono::seconds(100));
  std::vector<StepPlan> plans_;
  std::map<std::uint32_t, std::pair<SequenceId, std::uint32_t>> sequences_;
};

// How many steps had both requests.
std::size_t Together(const BatchTimeline& timeline) {
  return static_cast<std::size_t>(std::ranges::count_if(timeline.steps, [](const auto& step) {
    return step.prompts.size() + step.decodes.size() == 2;
  }));
}

BatchTimeline Record(scheduler::Batching batching) {
  Recorder recorder(batching);
  recorder.Arrive(11, 8);
  recorder.Arrive(12, 10);
  recorder.Run();
  const auto timeline = ReadTimeline(recorder.log(), {11, 12});
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.value_or(BatchTimeline());
}

TEST(ReadTimeline, SaysWhichRequestsWereInEachStep) {
  const BatchTimeline alone = Record(scheduler::Batching::kNone);
  EXPECT_EQ(Together(alone), 0u);
  const BatchTimeline shared = Record(scheduler::Batching::kContinuous);
  EXPECT_GE(Together(shared), 6u);
  for (const BatchTimeline* timeline : {&alone, &shared}) {
    ASSERT_EQ(timeline->requests.size(), 2u);
    EXPECT_EQ(timeline->requests[1].num_tokens, 10u);
    std::map<std::uint32_t, std::uint32_t> decodes;
    for (const TimelineStep& step : timeline->steps) {
      for (const std::uint32_t request : step.decodes) ++decodes[request];
      EXPECT_LT(step.begin, step.end);
      EXPECT_LE(step.end - step.begin, 1.0 + 1e-9);
    }
    // The prompt's step samples the first token.
    EXPECT_EQ(decodes[0], 7u);
    EXPECT_EQ(decodes[1], 9u);
  }
  EXPECT_GT(alone.end, shared.end);
}

TEST(ReadTimeline, OtherRequestsAndBrokenLogs) {
  Recorder recorder(scheduler::Batching::kContinuous);
  recorder.Arrive(11, 4);
  recorder.Arrive(12, 6);
  recorder.Run();
  const auto one = ReadTimeline(recorder.log(), {12});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(Together(*one), 0u);
  EXPECT_FALSE(ReadTimeline("no log", {12}).ok());
}

TEST(Pictures, DrawEveryModeAndRequest) {
  const std::vector<ModeTimeline> modes = {{"nobatch", Record(scheduler::Batching::kNone)},
                                           {"dynamic", Record(scheduler::Batching::kContinuous)}};
  const std::string timeline = TimelineSvg(modes);
  EXPECT_THAT(timeline, HasSubstr("nobatch: 2 requests in "));
  EXPECT_THAT(timeline, HasSubstr("request 1: 10 tokens"));
  EXPECT_THAT(StepsSvg(modes), HasSubstr("</svg>"));
  EXPECT_THAT(TimelineSvg({{"static", BatchTimeline()}}), HasSubstr("</svg>"));
  EXPECT_THAT(StepsSvg({{"static", BatchTimeline()}}), HasSubstr("</svg>"));
}

TEST(Pictures, AModeHasOneColourWhateverItsPosition) {
  const BatchTimeline timeline = Record(scheduler::Batching::kContinuous);
  for (const std::vector<ModeTimeline>& modes :
       {std::vector<ModeTimeline>{{"dynamic", timeline}},
        std::vector<ModeTimeline>{{"nobatch", timeline}, {"dynamic", timeline}}}) {
    EXPECT_THAT(TimelineSvg(modes), HasSubstr("class=\"dynamic\""));
    EXPECT_THAT(StepsSvg(modes), HasSubstr("class=\"dynamic\""));
  }
}

// Request 1 arrives first and generates in all steps; request 0 waits from the fifth step on.
TEST(Pictures, StepsHaveTheirNumbersAndRequestsInTheOrderOfArrival) {
  BatchTimeline timeline;
  timeline.requests = {{3.5, 4}, {0, 12}};
  timeline.by_arrival = {1, 0};
  for (std::uint32_t s = 0; s < 12; ++s) {
    const double begin = s;
    timeline.steps.push_back({begin, begin + 1, {}, {1}});
  }
  const std::string svg = StepsSvg({{"dynamic", timeline}});
  EXPECT_THAT(svg, HasSubstr(">number of the step<"));
  EXPECT_THAT(svg, HasSubstr(">10<"));
  EXPECT_THAT(svg, HasSubstr("<path d=\"M74 88h")) << "the first row generates";
  EXPECT_THAT(svg, HasSubstr("<path d=\"M100 98h")) << "the second row waits";
}

// A batch of four begins at 4 s, another one of one request at 6 s.
TEST(Pictures, StepsBeginWhereTheModesRunTheMostRequests) {
  BatchTimeline timeline;
  for (std::uint32_t r = 0; r < 12; ++r) {
    timeline.requests.push_back({0.8 * r, 4});
    timeline.by_arrival.push_back(r);
  }
  for (std::uint32_t s = 0; s < 200; ++s) {
    const double begin = s;
    timeline.steps.push_back({begin, begin + 1, {}, {s % 12}});
  }
  timeline.steps[4].prompts = {4, 5, 6, 7};
  timeline.steps[6].prompts = {8};
  EXPECT_THAT(StepsSvg({{"static", timeline}}), HasSubstr("static: steps 5 to 94 of 200"));
  // A batch of several is shown wherever it is, since batches of one look as without batching.
  timeline.steps[4].prompts = {4};
  timeline.steps[100].prompts = {9, 10};
  EXPECT_THAT(StepsSvg({{"static", timeline}}), HasSubstr("static: steps 101 to 190 of 200"));
  timeline.steps[100].prompts = {};
  timeline.steps[4].decodes.clear();
  timeline.steps[6].decodes.clear();
  EXPECT_THAT(StepsSvg({{"static", timeline}}),
              HasSubstr("1.0 requests in a step, as no two lengths are equal<"));
  EXPECT_THAT(StepsSvg({{"nobatch", timeline}}), HasSubstr("1.0 requests in a step<"));
}

Report ReadmeReport(int repeats) {
  Report report;
  report.repeats = static_cast<std::uint32_t>(repeats);
  ModeRuns runs{"dynamic", {}};
  for (int r = 0; r < repeats; ++r) {
    TraceRun run;
    for (std::uint32_t n = 1; n <= 200; ++n) {
      run.outcomes.push_back({.latency = 0.01 * n + 0.1 * r, .num_tokens = n});
    }
    runs.runs.push_back(std::move(run));
  }
  report.runs = {runs};
  report.summaries = {Summarise(runs)};
  return report;
}

TEST(Latency, ManyLengthsAreIntervalsWithTheirOwnConfidence) {
  const Report report = ReadmeReport(2);
  const std::vector<Bucket> buckets = Buckets(report.runs.front(), 10);
  ASSERT_EQ(buckets.size(), 20u);
  EXPECT_EQ(buckets[0].num_tokens, 5.5);
  EXPECT_NEAR(buckets[0].mean, 0.105, 1e-9);
  EXPECT_NEAR(buckets[0].high - buckets[0].mean, 12.706 * 0.05, 1e-6);
  EXPECT_THAT(LatencySvg(report), HasSubstr("fill-opacity")) << "the shade";
  EXPECT_THAT(LatencyCaption(report), HasSubstr("1 to 10"));
  EXPECT_THAT(LatencyCaption(report), HasSubstr("The shade"));
}

TEST(Latency, TheCaptionNamesOnlyWhatIsDrawn) {
  const Report once = ReadmeReport(1);
  EXPECT_THAT(LatencySvg(once), Not(HasSubstr("fill-opacity")));
  EXPECT_THAT(LatencyCaption(once), Not(HasSubstr("shade")));
  Report few = once;
  few.summaries.front().buckets.resize(29);
  EXPECT_THAT(LatencyCaption(few), HasSubstr("one number of tokens"));
}

TEST(Page, HasEveryColumnOfTheTable) {
  const Report report = ReadmeReport(2);
  const std::string page = ToPage(report);
  for (const auto& row : ToCells(report.summaries)) {
    for (const std::string& cell : row) EXPECT_THAT(page, HasSubstr(">" + cell + "<"));
  }
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(ToTable(report.summaries), HasSubstr("mean ms\n"));
}

}  // namespace
}  // namespace penstock::bench::effective
