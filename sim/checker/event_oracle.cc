#include "sim/checker/event_oracle.h"

#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>
#include <variant>

namespace penstock::sim {
namespace {

using scheduler::Event;
using scheduler::Failed;
using scheduler::FailureKind;
using scheduler::Finished;
using scheduler::PromptLogprobs;
using scheduler::Started;
using scheduler::Tokens;

// The shortest text that tells it from all others.
std::string Number(float value) {
  std::array<char, 64> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string DescribeTokens(std::uint32_t first, std::span<const SampledToken> tokens,
                           std::size_t count) {
  std::string text = "tokens from " + std::to_string(first) + ":";
  for (std::size_t i = 0; i < count; ++i) {
    text += " " + std::to_string(tokens[i].token);
    if (tokens[i].forced) text += " forced";
    if (tokens[i].logprob == 0.0f && tokens[i].alternatives.empty()) continue;
    text += " at " + Number(tokens[i].logprob);
    for (const TokenLogprob& other : tokens[i].alternatives) {
      text += " or " + std::to_string(other.token) + " at " + Number(other.logprob);
    }
  }
  return text;
}

std::string DescribeEnd(FinishReason reason, std::uint32_t tokens) {
  static const char* const names[] = {"eos", "length", "stop token", "stop string", "cancelled"};
  return std::string("finished by ") + names[static_cast<int>(reason)] + " with " +
         std::to_string(tokens) + " tokens";
}

std::string DescribeFailure(FailureKind kind, const std::string& message) {
  const bool given = kind == FailureKind::kGroupLost || kind == FailureKind::kShardError;
  return "failed with kind " + std::to_string(static_cast<int>(kind)) +
         (given ? ": " + message : "");
}

std::string DescribeLogprobs(std::span<const float> logprobs,
                             std::span<const PromptAlternatives> alternatives) {
  std::string text = "prompt logprobs:";
  for (const float logprob : logprobs) text += " " + Number(logprob);
  for (const PromptAlternatives& position : alternatives) {
    text += " rank " + std::to_string(position.rank) + " of";
    for (const TokenLogprob& other : position.top) text += " " + std::to_string(other.token);
  }
  return text;
}

std::string Describe(const Event& event) {
  if (const auto* tokens = std::get_if<Tokens>(&event.what)) {
    return DescribeTokens(tokens->first_index, tokens->tokens, tokens->tokens.size());
  }
  if (const auto* logprobs = std::get_if<PromptLogprobs>(&event.what)) {
    return DescribeLogprobs(logprobs->logprobs, logprobs->alternatives);
  }
  if (const auto* end = std::get_if<Finished>(&event.what)) {
    return DescribeEnd(end->reason, end->generated_tokens);
  }
  if (const auto* failed = std::get_if<Failed>(&event.what)) {
    return DescribeFailure(failed->kind, failed->message);
  }
  return "started";
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : ", ") + line;
  return text.empty() ? "nothing" : text;
}

// At one position, length wins over end of sequence and stop token, and these over a stop string.
std::optional<FinishReason> ReasonAt(const RequestModel& request, std::uint32_t tokens,
                                     ShardFinish shard) {
  if (tokens >= request.arrival.max_new_tokens) return FinishReason::kLength;
  if (shard == ShardFinish::kLength) return FinishReason::kLength;
  if (shard == ShardFinish::kEos) return FinishReason::kEos;
  if (shard == ShardFinish::kStopToken) return FinishReason::kStopToken;
  if (request.finish_at && tokens >= *request.finish_at) return FinishReason::kStopString;
  return std::nullopt;
}

bool IsEnd(const Event& event) {
  return std::holds_alternative<Finished>(event.what) || std::holds_alternative<Failed>(event.what);
}

}  // namespace

void EventOracle::ExpectResult(RequestModel& request, const SequenceResult& result) {
  Expected& expected = expected_[request.arrival.request];
  const std::uint32_t received = request.received();
  const auto given = static_cast<std::uint32_t>(result.tokens.size());
  const std::uint32_t count = std::min(given, request.Last() - std::min(received, request.Last()));
  request.prompt_logprobs.insert(request.prompt_logprobs.end(), result.prompt_logprobs.begin(),
                                 result.prompt_logprobs.end());
  request.prompt_alternatives.insert(request.prompt_alternatives.end(),
                                     result.prompt_alternatives.begin(),
                                     result.prompt_alternatives.end());
  if (count > 0) {
    if (request.arrival.logprobs.prompt_logprobs && !request.prompt_logprobs_told) {
      request.prompt_logprobs_told = true;
      expected.events.push_back(
          DescribeLogprobs(request.prompt_logprobs, request.prompt_alternatives));
    }
    expected.events.push_back(DescribeTokens(received, result.tokens, count));
    for (std::uint32_t i = 0; i < count; ++i) request.tokens.push_back(result.tokens[i].token);
  }
  const ShardFinish shard = count == given ? result.finish : ShardFinish::kNone;
  if (const auto reason = ReasonAt(request, request.received(), shard)) {
    ExpectEnd(request, *reason, request.received());
  } else if (shard == ShardFinish::kError) {
    ExpectFailure(request, FailureKind::kShardError, result.error);
  }
}

void EventOracle::ExpectEnd(RequestModel& request, FinishReason reason, std::uint32_t tokens) {
  expected_[request.arrival.request].events.push_back(DescribeEnd(reason, tokens));
  request.state = RequestModel::State::kDone;
}

void EventOracle::ExpectFailure(RequestModel& request, FailureKind kind,
                                const std::string& message) {
  expected_[request.arrival.request].events.push_back(DescribeFailure(kind, message));
  request.state = RequestModel::State::kDone;
}

void EventOracle::AllowFailure(const RequestModel& request, FailureKind kind) {
  expected_[request.arrival.request].may_fail = kind;
}

void EventOracle::Check(const std::vector<Event>& events,
                        std::map<RequestId, RequestModel>& requests) {
  std::map<RequestId, std::vector<std::string>> said;
  std::map<RequestId, int> ends;
  for (const Event& event : events) {
    const auto it = requests.find(event.request);
    if (it == requests.end()) {
      findings_.Add("G2", "an event for " + Name(event.request) + ", which never arrived");
      continue;
    }
    if (std::holds_alternative<Started>(event.what)) {
      Tell(it->second, event);
      continue;
    }
    const auto expected = expected_.find(event.request);
    const auto* failed = std::get_if<Failed>(&event.what);
    if (failed != nullptr) CheckMessage(it->second, *failed);
    if (failed != nullptr && expected != expected_.end() &&
        expected->second.may_fail == failed->kind && !it->second.done()) {
      it->second.state = RequestModel::State::kDone;
      continue;
    }
    if (IsEnd(event) && ++ends[event.request] > 1) {
      findings_.Add("G2", Name(event.request) + " ends twice");
    }
    said[event.request].push_back(Describe(event));
  }
  for (const auto& [id, expected] : expected_) {
    const std::vector<std::string> heard = std::move(said[id]);
    said.erase(id);
    if (heard == expected.events) continue;
    const bool ends_differ = ends[id] != (requests.at(id).done() ? 1 : 0);
    findings_.Add(ends_differ ? "G2" : "G3",
                  Name(id) + " must hear " + Join(expected.events) + "; it hears " + Join(heard));
  }
  for (const auto& [id, heard] : said) {
    findings_.Add(ends[id] > 0 ? "G2" : "G3",
                  Name(id) + " hears " + Join(heard) + " for no reason");
  }
  expected_.clear();
}

void EventOracle::CheckMessage(const RequestModel& request, const Failed& failed) {
  const std::string& text = failed.message;
  const auto has = [&text](std::uint64_t number) {
    return text.find(std::to_string(number)) != text.npos;
  };
  const auto mentions = [&text](const char* field) { return text.find(field) != text.npos; };
  bool good = !text.empty();
  if (failed.kind == FailureKind::kTooLarge) {
    const std::uint32_t candidates = request.arrival.sampling.Candidates();
    if (mentions("`inputs`")) good = good && has(request.prompt());
    if (mentions("`max_new_tokens`")) good = good && has(request.arrival.max_new_tokens);
    if (mentions("`top_k`")) good = good && has(candidates);
  }
  if (!good) findings_.Add("G2", Name(request.arrival.request) + " fails with \"" + text + "\"");
}

void EventOracle::Tell(RequestModel& request, const Event& event) {
  const auto& started = std::get<Started>(event.what);
  if (++request.starts > 1) findings_.Add("G2", Name(event.request) + " is told twice to start");
  if (started.prompt_tokens != request.prompt()) {
    findings_.Add("G3", Name(event.request) + " starts with another prompt length");
  }
}

}  // namespace penstock::sim
