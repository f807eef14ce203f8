#include "router/answer/scanner.h"

#include <algorithm>
#include <utility>

#include "router/answer/cursor.h"

namespace penstock::router::answer {
namespace {

using Kind = MarkerTable::Kind;

// A header that is longer is none.
constexpr std::size_t kMaxHeaderBytes = 8192;

MarkerTable TextMarkers(const Format& format, bool calls) {
  MarkerTable table;
  for (const ReasoningMarkers& markers : format.reasoning) {
    table.Add(markers.open, markers.anywhere ? Kind::kReasoning : Kind::kReasoningBegin);
  }
  for (const std::string_view marker : format.dropped) table.Add(marker, Kind::kDropped);
  if (calls) {
    for (const std::string_view marker : format.openers) table.Add(marker, Kind::kCall);
    for (const std::string_view marker : format.line_openers) table.Add(marker, Kind::kLineCall);
  }
  table.Sort();
  return table;
}

MarkerTable MarkersInReasoning(const Format& format, bool calls) {
  MarkerTable table;
  for (const ReasoningMarkers& markers : format.reasoning) {
    table.Add(markers.open, Kind::kReasoningBegin);
    table.Add(markers.close, Kind::kReasoningEnd);
  }
  if (calls && format.calls_end_reasoning) {
    for (const std::string_view marker : format.openers) table.Add(marker, Kind::kCall);
  }
  table.Sort();
  return table;
}

bool PromptOpensReasoning(const Format& format, std::string_view prompt_end) {
  while (!prompt_end.empty() && IsBlank(prompt_end.back())) prompt_end.remove_suffix(1);
  return std::ranges::any_of(format.reasoning, [&](const ReasoningMarkers& markers) {
    return prompt_end.ends_with(markers.open);
  });
}

// Adds to the last event if it is of the same kind, so that pieces do not become many events.
template <class Delta>
void AppendDelta(std::vector<Event>& events, std::string_view text) {
  auto* last = events.empty() ? nullptr : std::get_if<Delta>(&events.back());
  if (last != nullptr) {
    last->text += text;
  } else {
    events.emplace_back(std::in_place_type<Delta>, std::string(text));
  }
}

}  // namespace

Scanner::Scanner(const Format& format, const ScanOptions& options)
    : format_(&format), tools_(options.tools) {
  const bool calls = tools_ != nullptr && !tools_->empty() && format.header != nullptr;
  text_markers_ = TextMarkers(format, calls);
  reasoning_markers_ = MarkersInReasoning(format, calls);
  if (PromptOpensReasoning(format, options.prompt_end)) {
    state_ = State::kReasoning;
    skip_blanks_ = true;
  }
}

void Scanner::Feed(std::string_view piece, std::vector<Event>& events) {
  pending_ += piece;
  while (Step(events)) continue;
}

void Scanner::Finish(std::vector<Event>& events) {
  finished_ = true;
  while (Step(events)) continue;
  if (state_ == State::kText || state_ == State::kReasoning) {
    Emit(pending_.size(), events);
  }
  if (state_ == State::kArguments) EndCall(events);
}

bool Scanner::Step(std::vector<Event>& events) {
  if (skip_blanks_) {
    const std::size_t size = std::min(pending_.find_first_not_of(" \n\t\r"), pending_.size());
    pending_.erase(0, size);
    if (!pending_.empty()) skip_blanks_ = false;
  }
  if (pending_.empty()) return false;
  switch (state_) {
    case State::kText:
    case State::kReasoning:
      return StepText(events);
    case State::kArguments:
      return StepArguments(events);
    case State::kTail:
      return StepTail();
    case State::kBetweenCalls:
      return StepBetweenCalls(events);
  }
  return false;
}

bool Scanner::AtLineBegin(std::size_t position) const {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (position > 0 && blank(pending_[position - 1])) --position;
  return (position == 0 ? last_ : pending_[position - 1]) == '\n';
}

// Searches the first marker that counts. Text before it is emitted, and text in which none can
// begin.
bool Scanner::StepText(std::vector<Event>& events) {
  const bool reasoning = state_ == State::kReasoning;
  const MarkerTable& table = reasoning ? reasoning_markers_ : text_markers_;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const bool at_begin = !begun_ && pending_.find_first_not_of(" \n\t\r") >= i;
    const auto allowed = [&](Kind kind) {
      if (kind == Kind::kReasoningBegin) return at_begin;
      return kind != Kind::kLineCall || (AtLineBegin(i) && !IsBlank(pending_[i]));
    };
    MarkerTable::Match match{.position = i};
    const auto rest = std::string_view(pending_).substr(i);
    if (!table.MatchAt(rest, finished_, allowed, match)) continue;
    Header header;
    std::size_t size = match.marker.size();
    if (!match.partial && (match.kind == Kind::kCall || match.kind == Kind::kLineCall)) {
      const Found found = ReadHeader(i, false, header, size);
      if (found == Found::kNone) continue;
      match.partial = found == Found::kUndecided;
    }
    Emit(i, events);
    if (match.partial) return false;
    if (header.tool == nullptr) return TakeMarker(match);
    Drop(pending_.find_first_not_of(" \n\t\r") + size);
    BeginCall(std::move(header), events);
    return true;
  }
  Emit(pending_.size(), events);
  return false;
}

bool Scanner::TakeMarker(const MarkerTable::Match& match) {
  Drop(pending_.find_first_not_of(" \n\t\r") + match.marker.size());
  skip_blanks_ = true;
  last_ = '\n';
  const bool opens = match.kind == Kind::kReasoning || match.kind == Kind::kReasoningBegin;
  if (opens) state_ = State::kReasoning;
  if (match.kind == Kind::kReasoningEnd) {
    state_ = State::kText;
    begun_ = true;
  }
  return true;
}

Scanner::Found Scanner::ReadHeader(std::size_t position, bool next, Header& header,
                                   std::size_t& size) const {
  const auto text = std::string_view(pending_).substr(position);
  Cursor cursor(text.substr(0, kMaxHeaderBytes), finished_ || text.size() > kMaxHeaderBytes);
  const auto read = next ? format_->next_header : format_->header;
  const bool whole = read(cursor, *tools_, header);
  size = cursor.position();
  if (cursor.undecided()) header = Header();
  if (cursor.undecided()) return Found::kUndecided;
  if (!whole) header = Header();
  return whole ? Found::kCall : Found::kNone;
}

void Scanner::BeginCall(Header header, std::vector<Event>& events) {
  begun_ = true;
  body_ = std::move(header.body);
  events.emplace_back(std::in_place_type<CallBegin>, calls_++, header.tool->name);
  EmitArguments(std::move(header.arguments), events);
  state_ = State::kArguments;
  if (body_ == nullptr) EndCall(events);
}

void Scanner::EmitArguments(std::string json, std::vector<Event>& events) const {
  if (json.empty()) return;
  auto* last = events.empty() ? nullptr : std::get_if<ArgumentsDelta>(&events.back());
  if (last != nullptr) {
    last->json += json;
  } else {
    events.emplace_back(std::in_place_type<ArgumentsDelta>, calls_ - 1, std::move(json));
  }
}

void Scanner::EndCall(std::vector<Event>& events) {
  events.emplace_back(std::in_place_type<CallEnd>, calls_ - 1);
  body_.reset();
  state_ = format_->tail == nullptr ? State::kBetweenCalls : State::kTail;
}

bool Scanner::StepArguments(std::vector<Event>& events) {
  std::string json;
  const std::size_t taken = body_->Take(pending_, finished_, json);
  Drop(taken);
  EmitArguments(std::move(json), events);
  if (!body_->done()) return false;
  EndCall(events);
  return true;
}

bool Scanner::StepTail() {
  Cursor cursor(pending_, finished_);
  const bool whole = format_->tail(cursor);
  if (cursor.undecided()) return false;
  if (whole) Drop(cursor.position());
  state_ = State::kBetweenCalls;
  return true;
}

bool Scanner::StepBetweenCalls(std::vector<Event>& events) {
  skip_blanks_ = true;
  if (IsBlank(pending_.front())) return true;
  Header header;
  std::size_t size = 0;
  Cursor closer(pending_, finished_);
  if (closer.TakeAny(format_->closers)) {
    Drop(closer.position());
    return true;
  }
  MarkerTable::Match match;
  const auto is_call = [](Kind kind) { return kind == Kind::kCall || kind == Kind::kLineCall; };
  const bool opener = text_markers_.MatchAt(pending_, finished_, is_call, match);
  Found found = Found::kNone;
  if (opener && !match.partial) found = ReadHeader(0, false, header, size);
  if (found == Found::kNone && format_->next_header != nullptr) {
    found = ReadHeader(0, true, header, size);
  }
  if (found == Found::kUndecided || closer.undecided() || (opener && match.partial)) return false;
  skip_blanks_ = false;
  if (found == Found::kCall) {
    Drop(size);
    BeginCall(std::move(header), events);
  } else {
    state_ = State::kText;
    last_ = '\n';
  }
  return true;
}

void Scanner::Emit(std::size_t size, std::vector<Event>& events) {
  const bool all = finished_ && size == pending_.size();
  std::size_t end = size;
  while (!all && end > 0 && IsBlank(pending_[end - 1])) --end;
  if (end == 0) return;
  const auto text = std::string_view(pending_).substr(0, end);
  if (state_ == State::kReasoning) {
    AppendDelta<ReasoningDelta>(events, text);
  } else {
    AppendDelta<TextDelta>(events, text);
  }
  begun_ = true;
  Drop(end);
}

void Scanner::Drop(std::size_t size) {
  if (size == 0) return;
  last_ = pending_[size - 1];
  pending_.erase(0, size);
}

}  // namespace penstock::router::answer
