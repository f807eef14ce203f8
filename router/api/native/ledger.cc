#include <chrono>
#include <string>

#include "router/api/native/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::native {
namespace {

template <class T>
void AppendBehind(std::string& out, const T& waits) {
  if (waits.behind) json::AppendMembers(out, "behind", waits.behind->value());
  if (waits.behind_other) json::AppendMembers(out, "behind_other_key", true);
}

void AppendSpan(std::string& out, const LedgerSpan& span, Time begin) {
  out += '{';
  json::AppendMembers(out, "kind", TimeKindName(span.kind), "after_ms",
                      Milliseconds(span.begin - begin), "ms", Milliseconds(span.end - span.begin));
  AppendBehind(out, span);
  if (span.steps > 0) {
    const auto append = [](std::string& text, RequestId id) { text += std::to_string(id.value()); };
    json::AppendMembers(out, "steps", span.steps, "beside", json::Array(span.beside, append),
                        "beside_left_out", span.beside_left_out);
  }
  out += '}';
}

void AppendTotals(std::string& out, const TimeTotals& totals) {
  out += '{';
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i] == Duration{0}) continue;
    json::AppendMembers(out, TimeKindName(static_cast<TimeKind>(i)), Milliseconds(totals[i]));
  }
  out += '}';
}

}  // namespace

void AppendLedger(std::string& out, const LedgerView& ledger) {
  out += ",\"ledger\":{";
  json::AppendMembers(out, "wall_ms", Milliseconds(ledger.wall), "closed", ledger.closed);
  if (!ledger.closed) json::AppendMembers(out, "now", TimeKindName(ledger.now));
  json::AppendMembers(out, "most", TimeKindName(ledger.most));
  AppendBehind(out, ledger);
  const auto append = [&](std::string& text, const LedgerSpan& span) {
    AppendSpan(text, span, ledger.begin);
  };
  json::AppendMembers(
      out, "totals_ms", [&](std::string& text) { AppendTotals(text, ledger.totals); }, "spans",
      json::Array(ledger.spans, append), "spans_left_out", ledger.spans_left_out);
  out += '}';
}

}  // namespace penstock::router::native
