#include "shard/model/projected_words.h"

#include <utility>

namespace penstock::shard {

class ProjectedWordsBuilder {
 public:
  explicit ProjectedWordsBuilder(DecoderBuilder& b) : b_(b) {}

  void Words(const std::string& table, const std::string& head, const std::string& projection,
             std::uint32_t width) {
    b_.Widen(Buffer::kWords, width);
    b_.built_.program.widths[static_cast<std::size_t>(Buffer::kSelected)] = width;
    b_.Embed(table, head, Buffer::kWords, 1.0f);
    b_.AddNorm(Buffer::kWords, NormKind::kCopy, "");
    Project(projection, Buffer::kHidden, b_.spec_.hidden, width);
  }

  void Output(const std::string& projection) {
    Project(projection, Buffer::kWords, b_.built_.program.Width(Buffer::kWords), b_.spec_.hidden);
    b_.AddNorm(Buffer::kWords, NormKind::kCopy, "");
  }

 private:
  // Every rank has the whole matrix, so there is nothing to sum.
  void Project(const std::string& name, Buffer out, std::uint64_t rows, std::uint64_t columns) {
    WeightTarget target{name, rows, columns, false, {}};
    target.parts.push_back(
        {b_.Name(name + ".weight"), {rows, columns}, {0, rows}, {0, columns}, 0});
    b_.Add(LinearOp{.in = Buffer::kNormed, .out = out, .weight = b_.AddTarget(std::move(target))});
  }

  DecoderBuilder& b_;
};

void AddProjectedWords(DecoderBuilder& b, const std::string& table, const std::string& head,
                       const std::string& projection, std::uint32_t width) {
  ProjectedWordsBuilder(b).Words(table, head, projection, width);
}

void AddOutputProjection(DecoderBuilder& b, const std::string& projection) {
  ProjectedWordsBuilder(b).Output(projection);
}

}  // namespace penstock::shard
