#include "router/api/anthropic/answer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "router/answer/arguments.h"
#include "router/api/anthropic/dialect.h"
#include "router/api/sse.h"
#include "router/json/writer.h"

namespace penstock::router::anthropic {
namespace {

enum class BlockKind : std::uint8_t { kThinking, kText, kCall };

std::string_view StopReason(FinishReason reason, bool calls) {
  if (reason == FinishReason::kLength || reason == FinishReason::kCancelled) return "max_tokens";
  if (reason == FinishReason::kStopString) return "stop_sequence";
  return calls ? "tool_use" : "end_turn";
}

// Each token of the prompt counts once: as read from the cache, as written to it, or as input.
struct Usage {
  std::uint32_t prompt = 0;
  std::uint32_t read = 0;
  std::uint32_t kept = 0;  // leading tokens that are kept
  std::uint32_t output = 0;
  std::uint32_t thinking = 0;

  std::uint32_t written() const { return kept > read ? kept - read : 0; }

  auto Members() const {
    return [*this](std::string& out) {
      json::AppendObject(out, "input_tokens", prompt - read - written(),
                         "cache_creation_input_tokens", written(), "cache_read_input_tokens", read,
                         "output_tokens", output, "output_tokens_details",
                         json::Object("thinking_tokens", thinking));
    };
  }
};

// What both forms share: the blocks of an answer, one after the other.
class Answer : public AnswerWriter {
 public:
  Answer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)),
        style_(std::move(style)),
        reader_(*style_.format, style_.read) {}

  void Start(std::size_t, const GenerationStart& start) override {
    reader_.Start(start.prompt_end);
    usage_.prompt = start.prompt_tokens;
    usage_.read = std::min(start.cached_tokens, start.prompt_tokens);
    usage_.kept = start.kept_tokens;
    Begin();
  }

  void Token(std::size_t, GenerationToken token) override { Take(reader_.Token(token.delta)); }

  void End(std::size_t, GenerationEnd end) override {
    Take(reader_.End(end.tail));
    if (open_) CloseBlock(*open_);
    usage_.read = std::min(end.cached_tokens, usage_.prompt);
    usage_.output = end.generated_tokens;
    usage_.thinking = reader_.reasoning_tokens();
    end_ = std::move(end);
  }

 protected:
  virtual void Begin() {}
  virtual void OpenBlock(BlockKind kind, std::string_view id, std::string_view tool) = 0;
  virtual void AddToBlock(BlockKind kind, std::string_view text) = 0;
  virtual void CloseBlock(BlockKind) {}

  // {"id":…,…,"content":CONTENT,"stop_reason":…,"usage":…}
  std::string MessageText(std::string_view content) const {
    std::string out = "{";
    json::AppendMembers(out, "id", style_.id, "type", "message", "role", "assistant", "model",
                        style_.model, "content", json::Raw{content});
    AppendStop(out);
    json::AppendMembers(out, "usage", usage_.Members());
    return out + "}";
  }

  void AppendStop(std::string& out) const {
    std::optional<std::string_view> reason, sequence;
    if (end_) reason = StopReason(end_->reason, reader_.calls() > 0);
    if (end_ && end_->reason == FinishReason::kStopString) sequence = end_->stop;
    json::AppendMembers(out, "stop_reason", reason, "stop_sequence", sequence);
  }

  const AnswerStyle& style() const { return style_; }
  const Usage& usage() const { return usage_; }
  Exchange& exchange() { return *exchange_; }

 private:
  void Take(const std::vector<answer::Event>& events) {
    for (const answer::Event& event : events) {
      std::visit([this](const auto& e) { On(e); }, event);
    }
  }
  void On(const answer::TextDelta& delta) { Add(BlockKind::kText, delta.text); }
  void On(const answer::ReasoningDelta& delta) {
    if (style_.thinking) Add(BlockKind::kThinking, delta.text);
  }
  void On(const answer::CallBegin& call) {
    Switch(
        BlockKind::kCall,
        answer::MakeCallId(*style_.format, style_.id, call.name, style_.earlier_calls + call.index),
        call.name);
  }
  void On(const answer::ArgumentsDelta& delta) { AddToBlock(BlockKind::kCall, delta.json); }
  void On(const answer::CallEnd&) {}

  void Add(BlockKind kind, std::string_view text) {
    if (open_ != kind) Switch(kind, "", "");
    AddToBlock(kind, text);
  }
  void Switch(BlockKind kind, std::string_view id, std::string_view tool) {
    if (open_) CloseBlock(*open_);
    open_ = kind;
    OpenBlock(kind, id, tool);
  }

  const std::shared_ptr<Exchange> exchange_;
  const AnswerStyle style_;
  answer::Reader reader_;
  Usage usage_;
  std::optional<BlockKind> open_;
  std::optional<GenerationEnd> end_;
};

class PlainAnswer final : public Answer {
 public:
  using Answer::Answer;

  void AllEnded(Time) override {
    std::string content;
    json::AppendArray(content, blocks_, [this](std::string& out, const Block& block) {
      if (block.kind == BlockKind::kText) {
        json::AppendObject(out, "type", "text", "text", block.text);
      } else if (block.kind == BlockKind::kThinking) {
        json::AppendObject(out, "type", "thinking", "thinking", block.text, "signature",
                           style().id);
      } else {
        const std::string input = answer::ArgumentsObject(block.text);
        json::AppendObject(out, "type", "tool_use", "id", block.id, "name", block.tool, "input",
                           json::Raw{input});
      }
    });
    exchange().Respond(JsonResponse(MessageText(content)));
  }

  void Failed(const ApiError& error) override { exchange().Respond(Errors().Response(error)); }

 private:
  struct Block {
    BlockKind kind = BlockKind::kText;
    std::string id;
    std::string tool;
    std::string text;
  };

  void OpenBlock(BlockKind kind, std::string_view id, std::string_view tool) override {
    blocks_.push_back({kind, std::string(id), std::string(tool), ""});
  }
  void AddToBlock(BlockKind, std::string_view text) override { blocks_.back().text += text; }

  std::vector<Block> blocks_;
};

class StreamAnswer final : public Answer {
 public:
  using Answer::Answer;

  bool Flush() override {
    const bool more = exchange().Write(pending_);
    pending_.clear();
    return more;
  }

  void AllEnded(Time) override {
    std::string delta = "{";
    AppendStop(delta);
    delta += '}';
    Append("message_delta", "delta", json::Raw{delta}, "usage", usage().Members());
    Append("message_stop");
    exchange().Write(pending_);
    exchange().Finish();
  }

  void Failed(const ApiError& error) override {
    if (!begun_) return exchange().Respond(Errors().Response(error));
    sse::AppendNamedEvent(pending_, "error", ErrorBody(error, style().request_id));
    exchange().Write(pending_);
    exchange().Finish();
  }

 private:
  void Begin() override {
    begun_ = true;
    HttpResponse head = sse::Head();
    head.filler = kPing;
    exchange().StartStream(std::move(head));
    Append("message_start", "message", json::Raw{MessageText("[]")});
    pending_ += kPing;
  }

  void OpenBlock(BlockKind kind, std::string_view id, std::string_view tool) override {
    ++blocks_;
    if (kind == BlockKind::kText) {
      AppendOpening(json::Object("type", "text", "text", ""));
    } else if (kind == BlockKind::kThinking) {
      AppendOpening(json::Object("type", "thinking", "thinking", "", "signature", ""));
    } else {
      AppendOpening(
          json::Object("type", "tool_use", "id", id, "name", tool, "input", json::Raw{"{}"}));
    }
  }

  void AddToBlock(BlockKind kind, std::string_view text) override {
    if (kind == BlockKind::kText) {
      AppendDelta(json::Object("type", "text_delta", "text", text));
    } else if (kind == BlockKind::kThinking) {
      AppendDelta(json::Object("type", "thinking_delta", "thinking", text));
    } else {
      AppendDelta(json::Object("type", "input_json_delta", "partial_json", text));
    }
  }

  void CloseBlock(BlockKind kind) override {
    if (kind == BlockKind::kThinking) {
      AppendDelta(json::Object("type", "signature_delta", "signature", style().id));
    }
    Append("content_block_stop", "index", blocks_ - 1);
  }

  template <class T>
  void AppendOpening(const T& block) {
    Append("content_block_start", "index", blocks_ - 1, "content_block", block);
  }
  template <class T>
  void AppendDelta(const T& delta) {
    Append("content_block_delta", "index", blocks_ - 1, "delta", delta);
  }

  template <class... Members>
  void Append(std::string_view type, const Members&... members) {
    sse::AppendNamedEvent(pending_, type, json::ObjectText("type", type, members...));
  }

  static constexpr std::string_view kPing = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

  std::size_t blocks_ = 0;
  bool begun_ = false;
  std::string pending_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream) {
  if (stream) return std::make_unique<StreamAnswer>(std::move(exchange), std::move(style));
  return std::make_unique<PlainAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::anthropic
