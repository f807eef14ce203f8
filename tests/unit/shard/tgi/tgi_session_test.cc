#include "shard/tgi/tgi_session.h"

#include <gmock/gmock.h>

#include <map>

#include "common/status.h"
#include "generate/v3/generate.pb.h"
#include "shard/service/plan_checker.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

namespace v3 = generate::v3;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kStepTokens = 8;

// Checks every plan like the service and repeats the prompt, token by token.
class Echo {
 public:
  explicit Echo(std::uint32_t vocabulary)
      : checker_({.epoch = Epoch(1),
                  .vocabulary = vocabulary,
                  .slots = 5,
                  .blocks = 9,
                  .block_size = 4,
                  .max_step_tokens = kStepTokens,
                  .max_sequence_length = 64,
                  .max_decode_rows = 1}) {}

  absl::StatusOr<StepResult> Run(StepPlan& plan) {
    plan.epoch = Epoch(1);
    plan.step = StepId(++steps);
    if (steps == fail_at) return absl::InternalError("the device is gone");
    PENSTOCK_RETURN_IF_ERROR(checker_.Check(plan));
    for (SlotId slot : plan.ends) sequences_.erase(slot);
    for (const SequenceStart& start : plan.starts) {
      sequences_[start.slot] = {start, 0, 0};
      starts.push_back(start);
      traces.push_back(start.trace_id);
    }
    StepResult result;
    for (const Segment& segment : plan.segments) result.sequences.push_back(Answer(segment));
    PENSTOCK_RETURN_IF_ERROR(checker_.Observe(plan, result));
    rows.push_back(result.sequences.size());
    return result;
  }

  std::size_t held() const { return sequences_.size(); }
  std::uint64_t steps = 0;
  std::uint64_t fail_at = 0;
  std::uint64_t bad_sequence = 0;  // its row fails
  std::vector<std::size_t> rows;
  std::vector<std::string> traces;  // of the sequences that were started
  std::vector<SequenceStart> starts;

 private:
  struct Sequence {
    SequenceStart start;
    std::uint32_t committed = 0;
    std::uint32_t generated = 0;
  };

  SequenceResult Answer(const Segment& segment) {
    Sequence& sequence = sequences_.at(segment.slot);
    const SequenceStart& start = sequence.start;
    SequenceResult result{segment.slot, start.sequence, {}, 0, ShardFinish::kNone, {}, {}};
    const bool prompt = segment.kind == Segment::Kind::kPrompt;
    sequence.committed += prompt ? segment.count : 1;
    result.committed_length = sequence.committed;
    if (segment.logits == Segment::Logits::kAll) {
      const bool last = sequence.committed == start.prompt_length;
      result.prompt_logprobs.assign(segment.count - (last ? 1 : 0), -0.5f);
    }
    if (sequence.committed < start.prompt_length) return result;
    if (start.sequence.value() == bad_sequence) {
      result.finish = ShardFinish::kError;
      result.error = "not a number";
      return result;
    }
    const TokenId token = start.prompt[sequence.generated++ % start.prompt.size()];
    result.tokens.push_back({token, -0.25f, {{token, -0.25f}}});
    if (sequence.generated == start.max_new_tokens) result.finish = ShardFinish::kLength;
    return result;
  }

  PlanChecker checker_;
  std::map<SlotId, Sequence> sequences_;
};

class TgiSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = text::Tokenizer::Load(testing_support::SourcePath("demo/model"));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    tokenizer_ = *loaded;
    echo_.emplace(tokenizer_->vocabulary());
    session_ = Make(true);
  }

  std::unique_ptr<TgiSession> Make(bool reports, std::uint32_t recompute_length = 0) {
    TgiSessionOptions options{reports, 5, 9, 4, kStepTokens, {tokenizer_->vocabulary(), 64}};
    options.recompute_length = recompute_length;
    return std::make_unique<TgiSession>(options, tokenizer_,
                                        [this](StepPlan& plan) { return echo_->Run(plan); });
  }

  static void Add(v3::PrefillRequest& prefill, std::uint64_t id, const std::string& text,
                  std::uint32_t max_new_tokens) {
    v3::Request& request = *prefill.mutable_batch()->add_requests();
    request.set_id(id);
    request.set_inputs(text);
    request.mutable_input_chunks()->add_chunks()->set_text(text);
    request.mutable_stopping_parameters()->set_max_new_tokens(max_new_tokens);
  }
  static v3::PrefillRequest One(std::uint64_t batch, std::uint64_t id, const std::string& text,
                                std::uint32_t max_new_tokens) {
    v3::PrefillRequest prefill;
    prefill.mutable_batch()->set_id(batch);
    Add(prefill, id, text, max_new_tokens);
    return prefill;
  }
  v3::PrefillResponse Prefill(const v3::PrefillRequest& request) {
    v3::PrefillResponse response;
    const absl::Status status = session_->Prefill(request, response);
    EXPECT_TRUE(status.ok()) << status;
    return response;
  }
  std::string Refused(const v3::PrefillRequest& request) {
    v3::PrefillResponse response;
    return Message(session_->Prefill(request, response));
  }
  v3::DecodeResponse Decode(std::initializer_list<std::uint64_t> ids,
                            std::string* error = nullptr) {
    v3::DecodeRequest request;
    for (std::uint64_t id : ids) request.add_batches()->set_id(id);
    v3::DecodeResponse response;
    const absl::Status status = session_->Decode(request, response);
    if (error != nullptr) *error = Message(status);
    EXPECT_EQ(status.ok(), error == nullptr) << status;
    return response;
  }
  template <class Response>
  static std::vector<std::uint64_t> Reported(const Response& response) {
    std::vector<std::uint64_t> ids;
    for (const v3::Generation& generation : response.generations()) {
      ids.push_back(generation.request_id());
    }
    return ids;
  }
  static std::vector<std::uint64_t> Members(const v3::CachedBatch& batch) {
    EXPECT_EQ(batch.size(), static_cast<std::uint32_t>(batch.request_ids_size()));
    return {batch.request_ids().begin(), batch.request_ids().end()};
  }

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<Echo> echo_;
  std::unique_ptr<TgiSession> session_;
};

TEST_F(TgiSessionTest, BatchesJoinUnderTheFirstIdAndEndedMembersAreListedOnce) {
  EXPECT_THAT(Members(Prefill(One(3, 10, "a cat", 5)).batch()), ElementsAre(10));
  EXPECT_THAT(Members(Prefill(One(4, 11, "a dog", 2)).batch()), ElementsAre(11));
  v3::DecodeResponse step = Decode({3, 4});
  EXPECT_EQ(step.batch().id(), 3u);
  EXPECT_TRUE(step.has_concat_ns());
  EXPECT_THAT(Reported(step), ElementsAre(10, 11));
  EXPECT_THAT(Members(step.batch()), ElementsAre(10, 11));
  EXPECT_EQ(step.generations(1).generated_text().finish_reason(), v3::FINISH_REASON_LENGTH);
  EXPECT_EQ(step.generations(1).generated_text().generated_tokens(), 2u);
  std::string error;
  Decode({4}, &error);
  EXPECT_EQ(error, "Batch ID 4 not found in cache.");
  step = Decode({3});
  EXPECT_THAT(Reported(step), ElementsAre(10));
  EXPECT_THAT(Members(step.batch()), ElementsAre(10));
  EXPECT_EQ(echo_->held(), 1u);
}

TEST_F(TgiSessionTest, TheBatchIsAbsentWhenAllHaveEnded) {
  const v3::PrefillResponse response = Prefill(One(0, 0, "a cat", 1));
  EXPECT_FALSE(response.has_batch());
  EXPECT_TRUE(session_->empty());
  EXPECT_EQ(response.generations(0).generated_text().generated_tokens(), 1u);
}

TEST_F(TgiSessionTest, FilterKeepsTheGivenOrderAndFreesTheRest) {
  v3::PrefillRequest prefill = One(1, 5, "a", 6);
  Add(prefill, 6, "b", 6);
  Add(prefill, 7, "c", 6);
  Prefill(prefill);
  v3::FilterBatchRequest filter;
  v3::FilterBatchResponse filtered;
  filter.set_batch_id(1);
  EXPECT_EQ(Message(session_->FilterBatch(filter, filtered)),
            "Batch must have at least one request");
  filter.add_request_ids(7);
  filter.add_request_ids(5);
  ASSERT_TRUE(session_->FilterBatch(filter, filtered).ok());
  EXPECT_THAT(Members(filtered.batch()), ElementsAre(7, 5));
  EXPECT_THAT(Reported(Decode({1})), ElementsAre(7, 5));
  EXPECT_EQ(echo_->held(), 2u);
  filter.add_request_ids(6);
  EXPECT_THAT(Message(session_->FilterBatch(filter, filtered)),
              HasSubstr("Request ID 6 not found"));
}

TEST_F(TgiSessionTest, ABatchIdCanBeUsedAgainAndAgain) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Prefill(One(0, 0, "a cat", 20)).has_batch());
  session_->ClearCache(std::nullopt);
  EXPECT_TRUE(session_->empty());
}

TEST_F(TgiSessionTest, LongPromptsAndWideBatchesTakeSeveralPlans) {
  const v3::PrefillResponse response =
      Prefill(One(0, 0, "one two three four five six seven eight nine ten", 3));
  EXPECT_THAT(Reported(response), ElementsAre(0));
  EXPECT_GT(echo_->steps, 1u);
}

TEST_F(TgiSessionTest, ARefusedCallChangesNothing) {
  Prefill(One(0, 0, "a cat", 5));
  EXPECT_THAT(Refused(One(1, 1, "a", 200)), HasSubstr("`max_new_tokens` must be at most 64"));
  EXPECT_THAT(Refused(One(1, 1, "a", 0)), HasSubstr("`max_new_tokens` must be at least 1"));
  v3::PrefillRequest two = One(1, 1, "a", 16);
  Add(two, 2, "b", 40);
  EXPECT_THAT(Refused(two), HasSubstr("Out of available cache blocks"));
  v3::PrefillRequest hot = One(1, 1, "a", 2);
  hot.mutable_batch()->mutable_requests(0)->mutable_parameters()->set_temperature(-1);
  EXPECT_THAT(Refused(hot), HasSubstr("temperature"));
  v3::PrefillRequest marked = One(1, 1, "a", 2);
  marked.mutable_batch()->mutable_requests(0)->mutable_parameters()->set_watermark(true);
  v3::PrefillResponse response;
  EXPECT_TRUE(absl::IsUnimplemented(session_->Prefill(marked, response)));
  EXPECT_THAT(Reported(Decode({0})), ElementsAre(0));
  EXPECT_TRUE(Prefill(One(1, 1, "a", 16)).has_batch());
}

TEST_F(TgiSessionTest, AStopStringEndsAndStaysInTheText) {
  v3::PrefillRequest prefill = One(0, 0, "a cat sat", 20);
  prefill.mutable_batch()->mutable_requests(0)->mutable_stopping_parameters()->add_stop_sequences(
      "cat");
  v3::PrefillResponse first = Prefill(prefill);
  v3::Generation last = first.generations(0);
  while (!last.has_generated_text()) last = Decode({0}).generations(0);
  EXPECT_EQ(last.generated_text().finish_reason(), v3::FINISH_REASON_STOP_SEQUENCE);
  EXPECT_THAT(last.generated_text().text(), testing::EndsWith("cat"));
  EXPECT_FALSE(last.generated_text().has_seed());
}

TEST_F(TgiSessionTest, PromptTokensAndTopTokensAreReturnedOnRequest) {
  v3::PrefillRequest prefill = One(0, 0, "a cat sat on the mat", 2);
  v3::Request& request = *prefill.mutable_batch()->mutable_requests(0);
  request.set_prefill_logprobs(true);
  request.set_top_n_tokens(1);
  request.set_truncate(3);
  const v3::Generation generation = Prefill(prefill).generations(0);
  EXPECT_EQ(generation.prefill_tokens().ids_size(), 3);
  EXPECT_NE(generation.prefill_tokens().logprobs(0), generation.prefill_tokens().logprobs(0));
  EXPECT_EQ(generation.prefill_tokens().logprobs(2), -0.5f);
  EXPECT_THAT(generation.prefill_tokens().is_special(), IsEmpty());
  ASSERT_EQ(generation.top_tokens_size(), 1);
  EXPECT_EQ(generation.top_tokens(0).ids(0), generation.tokens().ids(0));
  EXPECT_FALSE(Decode({0}).generations(0).has_prefill_tokens());
}

TEST_F(TgiSessionTest, AChunkedPromptReportsNothingBeforeItsLastChunk) {
  session_->SetMaxPrefillTokens(4);
  v3::PrefillRequest prefill = One(0, 0, "one two three four five six", 3);
  prefill.mutable_batch()->mutable_requests(0)->set_chunk_len(1);
  v3::PrefillResponse first = Prefill(prefill);
  EXPECT_THAT(Reported(first), IsEmpty());
  ASSERT_TRUE(first.has_batch());
  EXPECT_EQ(first.batch().current_tokens(), 4u);
  v3::PrefillRequest join = One(1, 1, "a", 3);
  join.mutable_cached_batch()->set_id(0);
  v3::PrefillResponse joined = Prefill(join);
  EXPECT_EQ(joined.batch().id(), 0u);
  EXPECT_THAT(Reported(joined), testing::Contains(1));
}

TEST_F(TgiSessionTest, ATextThatPassesTheRecomputeLengthBeginsAgainAndMissesNoToken) {
  constexpr std::uint32_t kLength = 12, kNew = 16;
  session_ = Make(true, kLength);
  const v3::PrefillResponse first = Prefill(One(0, 0, "a cat", kNew));
  std::vector<TokenId> text = echo_->starts.at(0).prompt;
  text.push_back(static_cast<TokenId>(first.generations(0).tokens().ids(0)));
  v3::Generation last;
  for (std::uint32_t token = 1; token < kNew; ++token) {
    const v3::DecodeResponse step = Decode({0});
    ASSERT_EQ(step.generations_size(), 1);
    last = step.generations(0);
    if (text.size() <= kLength) text.push_back(static_cast<TokenId>(last.tokens().ids(0)));
  }
  EXPECT_EQ(last.generated_text().generated_tokens(), kNew);
  EXPECT_EQ(last.generated_text().finish_reason(), v3::FINISH_REASON_LENGTH);
  ASSERT_EQ(echo_->starts.size(), 2u);
  const SequenceStart& again = echo_->starts[1];
  EXPECT_EQ(again.prompt, text);
  EXPECT_EQ(again.prompt_length, kLength + 1);
  EXPECT_EQ(again.sample_index_base, kLength + 1 - echo_->starts[0].prompt_length);
  EXPECT_EQ(again.max_new_tokens, kNew - again.sample_index_base);
}

TEST_F(TgiSessionTest, ATraceBelongsToTheRequestsOfItsPrefill) {
  v3::PrefillRequest joining = One(1, 11, "a dog", 4);
  joining.mutable_cached_batch()->set_id(Prefill(One(0, 10, "a cat", 4)).batch().id());
  Add(joining, 12, "a hat", 4);
  v3::PrefillResponse response;
  EXPECT_TRUE(session_->Prefill(joining, response, "00-ab-cd-01").ok());
  Decode({0});
  EXPECT_THAT(echo_->traces, ElementsAre("", "00-ab-cd-01", "00-ab-cd-01"));
}

TEST_F(TgiSessionTest, AFailedRowDropsOnlyTheBatchOfItsCall) {
  Prefill(One(0, 0, "a cat", 5));
  echo_->bad_sequence = 2;
  EXPECT_EQ(Refused(One(1, 1, "a", 2)), "request 1: not a number");
  EXPECT_FALSE(session_->broken());
  EXPECT_THAT(Reported(Decode({0})), ElementsAre(0));
}

TEST_F(TgiSessionTest, AnErrorOfTheEngineEndsTheSession) {
  Prefill(One(0, 0, "a cat", 5));
  echo_->fail_at = 2;
  std::string error;
  Decode({0}, &error);
  EXPECT_THAT(error, HasSubstr("the device is gone"));
  EXPECT_TRUE(session_->broken());
}

TEST_F(TgiSessionTest, ARankThatDoesNotReportKeepsTheSameState) {
  session_ = Make(false);
  v3::PrefillResponse first = Prefill(One(0, 0, "a cat", 2));
  EXPECT_THAT(Reported(first), IsEmpty());
  EXPECT_THAT(Members(first.batch()), ElementsAre(0));
  EXPECT_FALSE(Decode({0}).has_batch());
}

TEST_F(TgiSessionTest, TheHealthCheckSucceedsWhileAllBlocksAreInUse) {
  v3::PrefillRequest all = One(0, 0, "a", 32);
  Prefill(all);
  EXPECT_THAT(Refused(One(1, 1, "a", 8)), HasSubstr("Out of available cache blocks"));
  v3::PrefillRequest health = One(~std::uint64_t{0}, ~std::uint64_t{0}, "liveness", 1);
  health.mutable_batch()->mutable_requests(0)->add_blocks(0);
  health.mutable_batch()->mutable_requests(0)->add_slots(0);
  health.mutable_batch()->mutable_requests(0)->set_truncate(1);
  EXPECT_FALSE(Prefill(health).has_batch());
  EXPECT_THAT(Reported(Decode({0})), ElementsAre(0));
}

}  // namespace
}  // namespace penstock::shard
