#include "shard/model/short_conv.h"

#include <utility>

namespace penstock::shard {

class ShortConvBuilder {
 public:
  explicit ShortConvBuilder(DecoderBuilder& b) : b_(b) {}

  void Build(const std::string& name, std::uint32_t taps) {
    const std::uint64_t all = b_.spec_.hidden, count = all / b_.part_.world;
    const Range mine{b_.part_.rank * count, count};
    ShortConvOp op{.in = Buffer::kDelta, .mixed = Buffer::kDeltaMixed, .out = Buffer::kDeltaOut};
    op.shape = {.channels = static_cast<std::uint32_t>(count), .inputs = taps - 1};
    b_.Widen(op.in, 3 * op.shape.channels);
    b_.Widen(op.mixed, op.shape.channels);
    b_.Widen(op.out, op.shape.channels);
    const std::string in = name + ".in_proj";
    b_.Add(b_.RowLinear("short_conv", op.in,
                        {{in, 3 * all, mine},
                         {in, 3 * all, {all + mine.first, count}},
                         {in, 3 * all, {2 * all + mine.first, count}}}));
    const std::string weight = b_.Name(name + ".conv.weight");
    WeightTarget taps_of{weight, count, taps, false, {}};
    taps_of.parts.push_back({weight, {all, 1, taps}, mine, {0, taps}, 0});
    op.convolution = b_.AddTarget(std::move(taps_of));
    if (b_.HasBias(name + ".conv")) {
      const std::string bias = b_.Name(name + ".conv.bias");
      WeightTarget target{bias, count, 1, true, {}};
      target.parts.push_back({bias, {all}, mine, {0, 1}, 0});
      op.bias = b_.AddTarget(std::move(target));
    }
    op.state = static_cast<std::uint32_t>(b_.built_.program.states.size());
    b_.built_.program.states.push_back(op.shape);
    b_.Add(op);
    b_.ColumnLinear(name + ".out_proj", op.out, all, mine);
  }

 private:
  DecoderBuilder& b_;
};

void AddShortConv(DecoderBuilder& b, const std::string& name, std::uint32_t taps) {
  ShortConvBuilder(b).Build(name, taps);
}

}  // namespace penstock::shard
