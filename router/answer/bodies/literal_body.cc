#include "router/answer/bodies/literal_body.h"

#include <string>

#include "router/answer/bodies/literal_reader.h"
#include "router/answer/bodies/marker_search.h"

namespace penstock::router::answer {
namespace {

class LiteralBody final : public Body {
 public:
  LiteralBody(LiteralReader reader, std::span<const std::string_view> ends)
      : reader_(std::move(reader)), ends_(ends) {}

  std::size_t Take(std::string_view text, bool final, std::string& json) override {
    std::size_t taken = reader_.Take(text, final, json);
    done_ = reader_.done();
    if (!reader_.broken()) {
      if (final && !done_) json += text.substr(taken);
      return final && !done_ ? text.size() : taken;
    }
    for (; taken < text.size(); ++taken) {
      const Next next = NextMarker(text.substr(taken), ends_, final);
      done_ = next == Next::kMarker;
      if (next != Next::kOther) break;
      json += text[taken];
    }
    return taken;
  }

 private:
  LiteralReader reader_;
  const std::span<const std::string_view> ends_;
};

}  // namespace

std::unique_ptr<Body> MakePythonBody(std::span<const std::string_view> ends) {
  return std::make_unique<LiteralBody>(LiteralReader(LiteralReader::Begin::kArguments), ends);
}

std::unique_ptr<Body> MakeObjectBody(std::string_view quote,
                                     std::span<const std::string_view> ends) {
  return std::make_unique<LiteralBody>(LiteralReader(LiteralReader::Begin::kValue, quote), ends);
}

}  // namespace penstock::router::answer
