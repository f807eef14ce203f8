#include "router/http/framing.h"

#include <algorithm>
#include <string>

#include "router/http/text.h"

namespace penstock::router {
namespace {

constexpr const char* kLineEnd = "a line must end with CR LF";

HttpFailure Bad(std::string message) { return {400, std::move(message)}; }

HttpFailure TooLarge(int status, std::string_view field, std::string_view unit, std::size_t limit) {
  std::string message(field);
  message.append(" must have at most ").append(std::to_string(limit)).append(" ").append(unit);
  return {status, std::move(message)};
}

struct Counts {
  std::size_t host = 0;
  std::string_view named;  // by Host
  std::size_t content_length = 0;
  std::size_t transfer_encoding = 0;
  std::size_t authorization = 0;
};

bool IsContentLength(std::string_view value) {
  return !value.empty() && value.size() <= 19 &&
         std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsHost(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '/' && c != '?' && c != '#' && c != '@' && c != ',';
  });
}

std::optional<HttpFailure> CheckField(std::string_view line, bool http10, Counts& counts) {
  if (line.front() == ' ' || line.front() == '\t') return Bad("folded header lines are refused");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Bad("a header line has no colon");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trim(line.substr(colon + 1));
  if (EqualsIgnoreCase(name, "host")) {
    if (++counts.host > 1) return Bad("`Host` is given twice");
    if (!IsHost(value)) return Bad("`Host` is not a host name");
    counts.named = value;
  } else if (EqualsIgnoreCase(name, "content-length")) {
    if (++counts.content_length > 1) return Bad("`Content-Length` is given twice");
    if (!IsContentLength(value)) return Bad("`Content-Length` must be one decimal number");
  } else if (EqualsIgnoreCase(name, "transfer-encoding")) {
    if (++counts.transfer_encoding > 1) return Bad("`Transfer-Encoding` is given twice");
    if (http10) return Bad("`Transfer-Encoding` needs HTTP/1.1");
    if (!EqualsIgnoreCase(value, "chunked")) return Bad("`Transfer-Encoding` must be `chunked`");
  } else if (EqualsIgnoreCase(name, "authorization")) {
    if (++counts.authorization > 1) return Bad("`Authorization` is given twice");
  } else if (EqualsIgnoreCase(name, "content-encoding")) {
    if (!EqualsIgnoreCase(value, "identity")) {
      return HttpFailure{415, "`Content-Encoding` must be `identity`"};
    }
  }
  return std::nullopt;
}

// A method begins with a letter; a TLS hello or a binary protocol does not.
bool IsLetter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

std::string_view TargetOf(std::string_view line) {
  const std::size_t first = line.find(' ') + 1;
  return line.substr(first, line.rfind(' ') - first);
}

// The host of an absolute-form target; empty where it has none.
std::string_view HostOf(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualsIgnoreCase(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    return target.substr(0, target.find_first_of("/?"));
  }
  return {};
}

std::optional<HttpFailure> CheckRequestLine(std::string_view line) {
  if (line.empty() || !IsLetter(line.front())) return Bad("this is not HTTP");
  if (line.find_first_of("\r\n") != std::string_view::npos) {
    return Bad(kLineEnd);
  }
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return Bad("the request line is malformed");
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return HttpFailure{505, "the protocol must be HTTP/1.1 or HTTP/1.0"};
  }
  const std::string_view target = TargetOf(line);
  const bool asterisk = target == "*" && line.substr(0, first) == "OPTIONS";
  if (!asterisk && PathOf(target).empty()) {
    return Bad("the request target must be a path that begins with `/`");
  }
  if (target.find('#') != std::string_view::npos) return Bad("the request target has a fragment");
  return std::nullopt;
}

}  // namespace

std::string_view PathOf(std::string_view target) {
  if (target.starts_with('/')) return target;
  const std::string_view host = HostOf(target);
  if (host.empty()) return {};
  target.remove_prefix(static_cast<std::size_t>(host.data() + host.size() - target.data()));
  if (target.empty()) return "/";
  return target.starts_with('/') ? target : std::string_view();
}

std::optional<HttpFailure> CheckFraming(std::string_view head, const HttpLimits& limits) {
  if (head.size() > limits.head_bytes) {
    return TooLarge(431, "the request head", "bytes", limits.head_bytes);
  }
  std::size_t end = head.find("\r\n");
  if (end > limits.request_line) {
    return TooLarge(414, "the request line", "bytes", limits.request_line);
  }
  const std::string_view request_line = head.substr(0, end);
  if (auto failure = CheckRequestLine(request_line)) return failure;
  const bool http10 = request_line.ends_with("1.0");
  Counts counts;
  std::size_t fields = 0;
  for (std::size_t begin = end + 2; begin + 2 < head.size(); begin = end + 2) {
    if (++fields > limits.head_fields) {
      return TooLarge(431, "the request head", "headers", limits.head_fields);
    }
    end = head.find("\r\n", begin);
    if (auto failure = CheckField(head.substr(begin, end - begin), http10, counts)) return failure;
  }
  if (counts.host == 0 && !http10) return Bad("`Host` is missing");
  const std::string_view host = HostOf(TargetOf(request_line));
  if (!host.empty() && !EqualsIgnoreCase(host, counts.named)) {
    return Bad("the request target names another host than `Host`");
  }
  if (counts.transfer_encoding != 0 && counts.content_length != 0) {
    return Bad("`Content-Length` and `Transfer-Encoding` exclude each other");
  }
  return std::nullopt;
}

std::optional<HttpFailure> CheckUnfinished(std::string_view head, const HttpLimits& limits) {
  if (head.size() >= limits.head_bytes) {
    return TooLarge(431, "the request head", "bytes", limits.head_bytes);
  }
  if (head.size() > limits.request_line && head.find('\n') == std::string_view::npos) {
    return TooLarge(414, "the request line", "bytes", limits.request_line);
  }
  if (!head.empty() && !IsLetter(head.front())) return Bad("this is not HTTP");
  // A client that ends lines in this way would wait for the server, which waits for the end of the
  // head.
  const std::size_t end = head.find('\n');
  if (end != std::string_view::npos && (end == 0 || head[end - 1] != '\r')) return Bad(kLineEnd);
  return std::nullopt;
}

}  // namespace penstock::router
