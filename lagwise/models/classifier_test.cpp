#include <gtest/gtest.h>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

template <class Act>
void for_each_classifier(const Act& act) {
  for (const char* pooling : {"mean", "cls"})
    for (const char* attention : {kNormalised, kSigned, "exact"})
      for (const char* encoding : {"none", "rope:layout=half", "alibi", "sine_spe"}) {
        if (attention == kSigned && std::string(encoding) == "alibi") continue;
        SCOPED_TRACE(std::string(encoding) + " with " + attention + ", " + pooling);
        ModelConfig config = small_model("classifier", encoding, attention);
        config.pooling = pooling;
        act(*make_model(config));
      }
}

TEST(Classifier, GivesTheSameAnswerWithAndWithoutPadding) {
  for_each_classifier([](Model& model) {
    const at::Tensor tokens = random_tokens(2, 9, 11);
    const at::Tensor got =
        model.logits(batch_of(tokens, whole({9, 5})), {.seed = 2}).detach();
    ASSERT_EQ(got.sizes(), at::IntArrayRef({2, 3}));
    for (int64_t b = 0; b < 2; ++b)
      expect_same(got.narrow(0, b, 1),
                  model
                      .logits(batch_of(tokens.narrow(0, b, 1).narrow(1, 0, b ? 5 : 9)),
                              {.seed = 2})
                      .detach());
  });
}

TEST(Classifier, TellsTheOrderOfTokensByTheEncodingAlone) {
  const at::Tensor tokens = random_tokens(1, 9, 11), turned = tokens.flip(1);
  for (const char* attention : {kNormalised, "exact"}) {
    const auto blind = make_model(small_model("classifier", "none", attention));
    expect_same(blind->logits(batch_of(tokens), {}).detach(),
                blind->logits(batch_of(turned), {}).detach());
    const auto sees =
        make_model(small_model("classifier", "rope:layout=half", attention));
    const at::Tensor gap = sees->logits(batch_of(tokens), {}).detach() -
                           sees->logits(batch_of(turned), {}).detach();
    EXPECT_GT(gap.abs().max().item<double>(), 1e-3);
  }
}

TEST(Classifier, MakesARowOfEachPatch) {
  ModelConfig config = small_model("classifier", "none", kNormalised);
  config.patch = 3, config.vocabulary = 256;
  const auto model = make_model(config);
  const at::Tensor tokens = random_tokens(2, 12, 256);
  const at::Tensor rows = tokens.reshape({2, 4, 3});
  const auto logits = [&](const at::Tensor& x) {
    return model->logits(batch_of(x.reshape({2, 12})), {}).detach();
  };
  const at::Tensor whole_image = logits(tokens);
  expect_same(logits(rows.flip(1)), whole_image);  // rows have no order here,
  const at::Tensor gap = logits(rows.flip(2)) - whole_image;  // numbers in a row have
  EXPECT_GT(gap.abs().max().item<double>(), 1e-3);
  Batch batch = batch_of(tokens);
  batch.targets = whole({0, 2});
  model->loss(batch, {}).sum.backward();
  EXPECT_EQ(model->named_parameters()["embed.weight"].sizes(),
            at::IntArrayRef({16, 3}));
  expect_gradients(*model);
}

TEST(Classifier, RefusesPatchesThatDoNotFit) {
  ModelConfig config = small_model("classifier", "none", kNormalised);
  config.patch = 3;
  const auto model = make_model(config);
  const at::Tensor tokens = random_tokens(1, 10, 11);
  EXPECT_EQ(message_of([&] { model->logits(batch_of(tokens), {}); }),
            "expected whole patches of 3 numbers, got 10");
  EXPECT_EQ(message_of([&] { model->logits(batch_of(tokens, whole({9})), {}); }),
            "classifier: patches have no lengths");
  config.model = "decoder_lm";
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.patch: expected 1, or more for a classifier, got 3");
}

TEST(Classifier, SeesAGridWhereItsEncodingTakesOne) {
  for (const char* encoding : {"rope:layout=half", "conv_spe:kernel=3x3", "alibi"}) {
    SCOPED_TRACE(encoding);
    ModelConfig config = small_model("classifier", encoding, kNormalised);
    config.pooling = "cls", config.grid = {3, 4};
    const at::Tensor got =
        make_model(config)->logits(batch_of(random_tokens(2, 12, 11)), {}).detach();
    EXPECT_TRUE(at::isfinite(got).all().item<bool>());
  }
  ModelConfig line = small_model("classifier", "rope:layout=half", kNormalised);
  ModelConfig grid = line;
  grid.grid = {3, 4};
  const Batch batch = batch_of(random_tokens(1, 12, 11));
  const at::Tensor gap = make_model(line)->logits(batch, {}).detach() -
                         make_model(grid)->logits(batch, {}).detach();
  EXPECT_GT(gap.abs().max().item<double>(), 1e-4);
}

TEST(Classifier, SeesALineOrAGridWhereItIsTold) {
  ModelConfig config = small_model("classifier", "rope:layout=half", kNormalised);
  const Batch batch = batch_of(random_tokens(1, 12, 11));
  const at::Tensor line = make_model(config)->logits(batch, {}).detach();
  config.grid = {3, 4};
  const at::Tensor grid = make_model(config)->logits(batch, {}).detach();
  config.geometry = "line";
  expect_same(make_model(config)->logits(batch, {}).detach(), line, 0);
  EXPECT_TRUE(seen_grid(config).empty());
  config.geometry = "grid";
  expect_same(make_model(config)->logits(batch, {}).detach(), grid, 0);
  EXPECT_EQ(seen_grid(config), config.grid);
  config.encoding = "alibi";
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.grid: expected an encoding of 2 axes where it is grid, got 'alibi', "
            "which takes 1; with line every encoding sees the cells in a line");
  config.geometry = "auto";
  EXPECT_TRUE(seen_grid(config).empty());
  config.geometry = "grid", config.grid = {};
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.grid: expected auto or line, got grid: the data of this task has "
            "none");
}

TEST(Classifier, SaysWhatItNeeds) {
  ModelConfig config = small_model("classifier", "none", kNormalised);
  config.pooling = "max";
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.pooling: expected one of mean, cls, got 'max'");
  config.pooling = "mean", config.classes = 1;
  EXPECT_EQ(message_of([&] { make_model(config); }),
            "model.classes: expected at least 2, got 1");
  config.classes = 2;
  const std::string refused = message_of([&] { make_model(config)->start(1, {}); });
  EXPECT_EQ(refused.find("model 'classifier' does not generate; expected decoder_lm"),
            0u)
      << refused;
  EXPECT_EQ(refused.find("or classifier"), std::string::npos) << refused;
}

}  // namespace
}  // namespace lagwise
