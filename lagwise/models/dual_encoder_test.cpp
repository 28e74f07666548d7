#include <gtest/gtest.h>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

Batch pair_of(const at::Tensor& first, const at::Tensor& second,
              const at::Tensor& first_lengths = {},
              const at::Tensor& second_lengths = {}) {
  Batch batch;
  batch.tokens = first, batch.lengths = first_lengths;
  batch.source = second, batch.source_lengths = second_lengths;
  return batch;
}

template <class Act>
void for_each_dual_encoder(const Act& act) {
  for (const char* pooling : {"mean", "cls"})
    for (const char* attention : {kNormalised, "exact"})
      for (const char* encoding : {"none", "rope:layout=half", "sine_spe"}) {
        SCOPED_TRACE(std::string(encoding) + " with " + attention + ", " + pooling);
        ModelConfig config = small_model("dual_encoder", encoding, attention);
        config.pooling = pooling;
        act(*make_model(config));
      }
}

TEST(DualEncoder, GivesTheSameAnswerWithAndWithoutPadding) {
  for_each_dual_encoder([](Model& model) {
    const at::Tensor a = random_tokens(2, 9, 11, 1), b = random_tokens(2, 7, 11, 2);
    const at::Tensor got =
        model.logits(pair_of(a, b, whole({9, 5}), whole({3, 7})), {}).detach();
    ASSERT_EQ(got.sizes(), at::IntArrayRef({2, 3}));
    const int64_t long_a[] = {9, 5}, long_b[] = {3, 7};
    for (int64_t i = 0; i < 2; ++i)
      expect_same(got.narrow(0, i, 1),
                  model
                      .logits(pair_of(a.narrow(0, i, 1).narrow(1, 0, long_a[i]),
                                      b.narrow(0, i, 1).narrow(1, 0, long_b[i])),
                              {})
                      .detach());
  });
}

TEST(DualEncoder, ReadsBothTextsAndTellsThemApart) {
  const auto model = make_model(small_model("dual_encoder", "none", kNormalised));
  const at::Tensor a = random_tokens(1, 9, 11, 1), b = random_tokens(1, 9, 11, 2);
  const at::Tensor both = model->logits(pair_of(a, b), {}).detach();
  for (const Batch& other : {pair_of(a, a), pair_of(b, b), pair_of(b, a)}) {
    const at::Tensor gap = model->logits(other, {}).detach() - both;
    EXPECT_GT(gap.abs().max().item<double>(), 1e-3);
  }
}

TEST(DualEncoder, TrainsEveryParameter) {
  ModelConfig config = small_model("dual_encoder", "rope:layout=half", kNormalised);
  config.pooling = "cls";
  const auto model = make_model(config);
  Batch batch = pair_of(random_tokens(4, 9, 11, 1), random_tokens(4, 6, 11, 2));
  batch.targets = whole({0, 1, 2, 1});
  const Loss loss = model->loss(batch, {});
  EXPECT_EQ(loss.count, 4);
  loss.sum.backward();
  expect_gradients(*model);
}

TEST(DualEncoder, NeedsASecondText) {
  const auto model = make_model(small_model("dual_encoder", "none", kNormalised));
  EXPECT_EQ(message_of([&] { model->logits(batch_of(random_tokens(1, 5, 11)), {}); }),
            "dual_encoder: expected a second text, got none");
}

}  // namespace
}  // namespace lagwise
