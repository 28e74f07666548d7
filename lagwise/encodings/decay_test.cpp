#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/head_decay.h"

namespace lagwise {
namespace {

TEST(Decay, HandsOverTheScheduleOfItsKindAndLayer) {
  const at::Tensor q = at::randn({1, 4, 3, 8}, at::kDouble);
  for (const std::string& kind : decay_kinds()) {
    const auto encoding = make_encoding("decay:kind=" + kind, {.heads = 4, .dim = 8});
    const Layer third{2, 6};
    const Encoded e = encode_once(*encoding, q, q, {}, {}, &third);
    EXPECT_TRUE(e.q.is_same(q));
    EXPECT_TRUE(at::equal(e.decay, head_decay(kind, 4, 2, 6))) << kind;
  }
}

TEST(Decay, LearnsRatesThatNeverLetThePastGrow) {
  const auto encoding = make_encoding("decay:kind=learned", {.heads = 4, .dim = 8});
  Layer layer{0, 1, encoding->layer(0, 1)};
  const at::Tensor q = at::randn({1, 4, 3, 8});
  const at::Tensor start = encode_once(*encoding, q, q, {}, {}, &layer).decay;
  EXPECT_TRUE(at::allclose(start, head_decay("alibi", 4, 0, 1).to(at::kFloat)));
  at::Tensor rate = layer.own[0].second;
  rate.fill_(-30).requires_grad_(true);
  const at::Tensor slow = encode_once(*encoding, q, q, {}, {}, &layer).decay;
  EXPECT_TRUE(slow.lt(0).all().item<bool>());
  slow.sum().backward();
  EXPECT_TRUE(at::equal(rate.grad(), slow.detach()));  // d(-e^r)/dr = -e^r
}

}  // namespace
}  // namespace lagwise
