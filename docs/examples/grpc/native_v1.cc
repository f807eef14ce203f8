// A driver of the native protocol, penstock.v1.Shard, for one rank. It forms the group and then
// sends one plan per token on the Execute stream. Prompts and answers are token ids.
//
// usage: example_native_v1 SOCKET MAX_NEW_TOKENS TOKEN...
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "docs/examples/grpc/arguments.h"
#include "penstock/v1/shard.grpc.pb.h"

namespace v1 = penstock::v1;

namespace {

constexpr std::uint32_t kStepTokens = 512;
constexpr std::uint32_t kMaxLength = 1024;

class Shard {
 public:
  explicit Shard(const std::string& path) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    stub_ = v1::Shard::NewStub(
        grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments));
  }

  // Describe -> Configure -> Warmup -> Commit. The epoch must be above the last group's.
  bool Form() {
    // Ends when the model is loaded.
    grpc::ClientContext watch;
    v1::LoadProgress progress;
    const auto reader = stub_->WatchLoad(&watch, {});
    while (reader->Read(&progress)) {
    }
    v1::DescribeResponse facts;
    if (!reader->Finish().ok() || !Call(&v1::Shard::Stub::Describe, {}, facts)) return false;
    block_size_ = facts.block_size();
    epoch_ = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                        std::chrono::nanoseconds(1));

    v1::ConfigureRequest configure;
    configure.set_epoch(epoch_);
    configure.set_world_size(1);
    configure.set_fingerprint(facts.fingerprint());
    configure.mutable_limits()->set_max_step_tokens(kStepTokens);
    configure.mutable_limits()->set_max_sequences(8);
    configure.mutable_limits()->set_max_sequence_length(std::min(kMaxLength, facts.max_position()));
    v1::ConfigureResponse configured;
    v1::WarmupRequest warmup;
    warmup.set_epoch(epoch_);
    v1::WarmupResponse warm;
    v1::CommitRequest commit;
    commit.set_epoch(epoch_);
    v1::CommitResponse committed;
    if (!Call(&v1::Shard::Stub::Configure, configure, configured)) return false;
    if (!Call(&v1::Shard::Stub::Warmup, warmup, warm)) return false;
    *commit.mutable_blocks() = warm.blocks();  // with several ranks: the least of all
    return Call(&v1::Shard::Stub::Commit, commit, committed);
  }

  // Greedy. The prompt must fit into one step here.
  std::vector<std::int32_t> Generate(const std::vector<std::int32_t>& prompt,
                                     std::uint32_t max_new_tokens) {
    grpc::ClientContext context;
    const auto stream = stub_->Execute(&context);
    std::vector<std::int32_t> tokens;
    v1::StepPlan plan = FirstPlan(prompt, max_new_tokens);
    bool ended = false;
    for (std::uint64_t step = 1; !ended; ++step) {
      plan.set_epoch(epoch_);
      plan.set_step(step);
      v1::StepResult result;
      if (!stream->Write(plan) || !stream->Read(&result)) break;
      for (const v1::SequenceResult& sequence : result.sequences()) {
        for (const v1::SampledToken& token : sequence.tokens()) tokens.push_back(token.token());
        ended = sequence.finish() != v1::FINISH_NONE;
      }
      plan.Clear();
      v1::DecodeSegment& decode = *plan.add_segments()->mutable_decode();
      decode.set_slot(0);
      decode.set_max_rows(1);
    }
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    if (!status.ok()) std::cerr << status.error_message() << "\n";
    return tokens;
  }

 private:
  v1::StepPlan FirstPlan(const std::vector<std::int32_t>& prompt, std::uint32_t max_new_tokens) {
    v1::StepPlan plan;
    v1::SequenceStart& start = *plan.add_starts();
    start.set_slot(0);
    start.set_sequence(1);
    start.mutable_prompt()->Add(prompt.begin(), prompt.end());
    start.set_prompt_length(static_cast<std::uint32_t>(prompt.size()));
    start.set_max_new_tokens(max_new_tokens);
    v1::Sampling& sampling = *start.mutable_sampling();
    sampling.set_temperature(1);
    sampling.set_top_p(1);
    sampling.set_typical_p(1);
    sampling.set_repetition_penalty(1);
    const std::size_t tokens = prompt.size() + max_new_tokens;
    for (std::uint32_t block = 0; block * block_size_ < tokens; ++block) {
      v1::BlockOp& append = *plan.add_block_ops();
      append.set_kind(v1::BLOCK_OP_KIND_APPEND);
      append.set_slot(0);
      append.set_dst(block);
    }
    v1::PromptSegment& segment = *plan.add_segments()->mutable_prompt();
    segment.set_slot(0);
    segment.set_count(static_cast<std::uint32_t>(prompt.size()));
    segment.set_logits(v1::LOGITS_WANTED_LAST);
    return plan;
  }

  template <class Request, class Response>
  bool Call(grpc::Status (v1::Shard::Stub::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
            const Request& request, Response& response) {
    grpc::ClientContext context;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) std::cerr << status.error_message() << "\n";
    return status.ok();
  }

  std::unique_ptr<v1::Shard::Stub> stub_;
  std::uint64_t epoch_ = 0;
  std::uint32_t block_size_ = 16;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool asks = first == "--help" || first == "-h";
  if (asks || argc < 4) {
    (asks ? std::cout : std::cerr) << "Usage: " << argv[0] << " SOCKET MAX_NEW_TOKENS TOKEN...\n";
    return asks ? 0 : 2;
  }
  const auto max_new_tokens = ParseNumber<std::uint32_t>("MAX_NEW_TOKENS", argv[2], 1);
  std::vector<std::int32_t> prompt;
  for (int i = 3; i < argc; ++i) prompt.push_back(ParseNumber<std::int32_t>("TOKEN", argv[i], 0));
  Shard shard(argv[1]);
  if (!shard.Form()) {
    std::cerr << "no shard at " << argv[1] << " forms a group\n";
    return 1;
  }
  for (std::int32_t token : shard.Generate(prompt, max_new_tokens)) {
    std::cout << token << " ";
  }
  std::cout << "\n";
  return 0;
}
