#include <gtest/gtest.h>
#include <omp.h>

#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;

struct Choice {
  const char *encoding, *attention;
};

std::vector<Choice> choices() {
  std::vector<Choice> all;
  for (const char* attention : {kNormalised, kSigned})
    for (const char* encoding :
         {"none", "sinusoidal", "learned", "rope:layout=half", "lrpe",
          "lrpe:decay=retnet", "rope:layout=half,decay=alibi", "sine_spe:noise=exact",
          "sine_spe:noise=exact,decay=alibi", "sine_spe", "conv_spe:kernel=8", "decay",
          "alibi"})
      all.push_back({encoding, attention});
  for (const char* encoding :
       {"none", "rope:layout=half", "rope:layout=half,decay=alibi", "lrpe",
        "sine_spe:noise=exact,decay=alibi", "alibi", "huang", "t5", "transformer_xl",
        "shaw", "conv_spe:kernel=8"})
    all.push_back({encoding, "exact"});
  for (const char* attention : {"linear:map=favor:features=16", "linear:map=cosformer"})
    for (const char* encoding : {"none", "rope:layout=half"})
      all.push_back({encoding, attention});
  for (const char* encoding : {"alibi", "none", "huang", "rope:layout=half"})
    all.push_back({encoding, "exact:window=3"});
  for (const char* attention :
       {"linear:forget=gated,clocks=2..20", "linear:conv=4,gate_output=true",
        "deltanet", "gated_deltanet:clocks=2..20",
        "linear:map=favor:features=16,forget=gated",
        "linear:map=elu1,write=delta,forget=gated"})
    for (const char* encoding :
         {"none", "rope:layout=half", "lrpe:decay=retnet", "sine_spe", "alibi"})
      all.push_back({encoding, attention});
  for (const char* attention :
       {"forgetting_transformer:clocks=2..20", "exact:forget=gated,window=3,conv=2",
        "exact:conv=4,gate_output=true"})
    for (const char* encoding : {"none", "rope:layout=half", "alibi", "huang"})
      all.push_back({encoding, attention});
  all.push_back({"rope:layout=half", "gated_deltanet; exact:window=3"});
  all.push_back({"sine_spe | rope:layout=half", "linear | exact:window=3"});
  all.push_back({"sinusoidal; none", "exact:forget=gated,clocks=2..20; linear"});
  return all;
}

template <class Act>
void for_each_choice(const Act& act) {
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(std::string(choice.encoding) + " with " + choice.attention);
    const auto model =
        make_model(small_model("decoder_lm", choice.encoding, choice.attention));
    model->eval();
    act(*model);
  }
}

const Draw kDraw = {.seed = 7, .step = 2};

TEST(DecoderLm, GivesTheSameLogitsInAnySplit) {
  for_each_choice([](Model& model) {
    const at::Tensor tokens = random_tokens(2, 13, 11);
    const at::Tensor want = model.logits(batch_of(tokens), kDraw).detach();
    for (const int64_t prompt : {1, 6, 12}) {
      SCOPED_TRACE(prompt);
      const auto state = model.start(2, kDraw);
      expect_same(model.extend_all(*state, tokens.narrow(1, 0, prompt)),
                  want.narrow(1, 0, prompt));
      for (int64_t i = prompt; i < 13; ++i)
        expect_same(model.extend(*state, tokens.narrow(1, i, 1)), want.select(1, i));
    }
    const auto state = model.start(2, kDraw);
    for (int64_t i = 0; i < 12; i += 4)  // piece by piece
      expect_same(model.extend_all(*state, tokens.narrow(1, i, 4)),
                  want.narrow(1, i, 4));
  });
}

TEST(DecoderLm, TakesPromptsOfDifferentLengths) {
  for_each_choice([](Model& model) {
    const at::Tensor tokens = random_tokens(3, 9, 11),
                     more = random_tokens(3, 4, 11, 2);
    const auto all = model.start(3, kDraw);
    const at::Tensor lengths = whole({9, 2, 5});
    at::Tensor got = model.extend(*all, tokens, lengths);
    const at::Tensor next = model.extend(*all, more.narrow(1, 0, 1));
    // Pieces of different lengths again, then in step.
    const at::Tensor piece = model.extend(*all, more.narrow(1, 1, 2), whole({2, 1, 2}));
    const at::Tensor last = model.extend(*all, more.narrow(1, 3, 1));
    for (int64_t b = 0; b < 3; ++b) {
      SCOPED_TRACE(b);
      const auto one = model.start(1, kDraw);
      const auto row = [&](const at::Tensor& x, int64_t from, int64_t count) {
        return x.narrow(0, b, 1).narrow(1, from, count);
      };
      const auto length = lengths[b].item<int64_t>();
      expect_same(got.narrow(0, b, 1), model.extend(*one, row(tokens, 0, length)));
      expect_same(next.narrow(0, b, 1), model.extend(*one, row(more, 0, 1)));
      expect_same(piece.narrow(0, b, 1),
                  model.extend(*one, row(more, 1, b == 1 ? 1 : 2)));
      expect_same(last.narrow(0, b, 1), model.extend(*one, row(more, 3, 1)));
    }
  });
}

TEST(DecoderLm, SeesNoTokenAhead) {
  for_each_choice([](Model& model) {
    const at::Tensor tokens = random_tokens(1, 12, 11);
    at::Tensor other = tokens.clone();
    other.narrow(1, 7, 5).add_(1).remainder_(11);
    const at::Tensor a = model.logits(batch_of(tokens), kDraw).detach();
    const at::Tensor b = model.logits(batch_of(other), kDraw).detach();
    expect_same(a.narrow(1, 0, 7), b.narrow(1, 0, 7), 1e-5);
    EXPECT_GT((a - b).narrow(1, 7, 5).abs().max().item<double>(), 1e-3);
  });
}

TEST(DecoderLm, IgnoresPaddingInTraining) {
  for_each_choice([](Model& model) {
    const at::Tensor tokens = random_tokens(2, 9, 11);
    const at::Tensor got =
        model.logits(batch_of(tokens, whole({4, 9})), kDraw).detach();
    const at::Tensor want =
        model.logits(batch_of(tokens.narrow(0, 0, 1).narrow(1, 0, 4)), kDraw).detach();
    expect_same(got.narrow(0, 0, 1).narrow(1, 0, 4), want);
  });
}

TEST(DecoderLm, KeepsAStateOfConstantSizeWithLinearAttention) {
  for (const char* encoding : {"none", "rope:layout=half", "sine_spe", "alibi"}) {
    SCOPED_TRACE(encoding);
    const auto model = make_model(small_model("decoder_lm", encoding, kNormalised));
    const auto state = model->start(1, kDraw);
    const at::Tensor tokens = random_tokens(1, 40, 11);
    model->extend(*state, tokens.narrow(1, 0, 3));
    model->extend(*state, tokens.narrow(1, 3, 1));
    const int64_t early = state->bytes();
    EXPECT_GT(early, 0);
    for (int64_t i = 4; i < 40; ++i) model->extend(*state, tokens.narrow(1, i, 1));
    EXPECT_EQ(state->bytes(), early);
  }
}

TEST(DecoderLm, KeepsAStateOfConstantSizeWhateverItRemembersBy) {
  for (const char* attention :
       {"retnet", "gla-scalar", "mamba2-like", "deltanet", "gated_deltanet",
        "exact:window=5", "exact:window=5,forget=gated,conv=3",
        "gated_deltanet; exact:window=5"}) {
    SCOPED_TRACE(attention);
    const auto model = make_model(small_model("decoder_lm", "none", attention));
    const auto state = model->start(1, kDraw);
    const at::Tensor tokens = random_tokens(1, 400, 11);
    model->extend(*state, tokens.narrow(1, 0, 7));
    const int64_t early = state->bytes();
    EXPECT_GT(early, 0);
    for (int64_t i = 7; i < 40; ++i) model->extend(*state, tokens.narrow(1, i, 1));
    EXPECT_EQ(state->bytes(), early);
    model->extend(*state, tokens.narrow(1, 40, 360));
    EXPECT_EQ(state->bytes(), early);
  }
}

// S [D, E] of 2 heads of 8 and 3 recent rows of q, k and v, in each of 2 layers.
TEST(DecoderLm, SaysWhatAStateOfAGatedDeltaNetOccupies) {
  const auto model = make_model(small_model("decoder_lm", "none", "gated_deltanet"));
  const auto state = model->start(1, kDraw);
  model->extend(*state, random_tokens(1, 10, 11));
  EXPECT_EQ(state->bytes(), 2 * (2 * 8 * 8 + 3 * 3 * 16) * 4);
}

// After a single token: a rotation keeps its table of the rows that came last.
TEST(DecoderLm, KeepsThatStateAtTheMillionthToken) {
  const auto model =
      make_model(small_model("decoder_lm", "rope:layout=half", "gated_deltanet"));
  const auto state = model->start(1, kDraw);
  const at::Tensor tokens = random_tokens(1, 20'000, 11);
  model->extend(*state, tokens.narrow(1, 0, 10));
  model->extend(*state, tokens.narrow(1, 10, 1));
  const int64_t early = state->bytes();
  for (int part = 0; part < 50; ++part) model->extend(*state, tokens);
  EXPECT_TRUE(
      at::isfinite(model->extend(*state, tokens.narrow(1, 0, 1))).all().item<bool>());
  EXPECT_EQ(state->bytes(), early);
}

TEST(DecoderLm, KeepsACacheThatGrowsWithExactAttention) {
  const auto model = make_model(small_model("decoder_lm", "none", "exact"));
  const auto state = model->start(1, kDraw);
  EXPECT_EQ(state->bytes(), 0);
  model->extend(*state, random_tokens(1, 10, 11));
  EXPECT_EQ(state->bytes(), 2 /*layers*/ * 2 /*k, v*/ * 10 * 16 * 4);
}

TEST(DecoderLm, KeepsItsCacheInHalfTheBytesIfAsked) {
  const auto half = make_model(small_model("decoder_lm", "none", "exact:cache=bf16"));
  const auto full = make_model(small_model("decoder_lm", "none", "exact"));
  const auto a = half->start(1, kDraw), b = full->start(1, kDraw);
  const at::Tensor tokens = random_tokens(1, 10, 11);
  expect_same(half->extend(*a, tokens), full->extend(*b, tokens), 0.05);
  EXPECT_EQ(2 * a->bytes(), b->bytes());
}

TEST(DecoderLm, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto run = [](const char* attention, int threads) {
    omp_set_num_threads(threads);
    ModelConfig config = small_model("decoder_lm", "sine_spe", attention);
    config.dropout = 0.2;
    const auto model = make_model(config);
    Batch batch = batch_of(random_tokens(2, 33, 11));
    batch.targets = random_tokens(2, 33, 11, 2);
    const Loss loss = model->loss(batch, kDraw);
    loss.sum.backward();
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& one : model->parameters())
      gradients.push_back(one.grad().reshape({-1}));
    return at::cat(gradients);
  };
  const int before = omp_get_max_threads();
  for (const char* attention :
       {kNormalised, "gated_deltanet", "exact:forget=gated,conv=4"}) {
    SCOPED_TRACE(attention);
    const at::Tensor one = run(attention, 1);
    EXPECT_TRUE(one.equal(run(attention, 2)));
    EXPECT_TRUE(one.equal(run(attention, 4)));
  }
  omp_set_num_threads(before);
}

TEST(DecoderLm, SaysWhatTokensItTakes) {
  const auto model = make_model(small_model("decoder_lm", "none", kNormalised));
  EXPECT_EQ(message_of([&] {
              model->logits(batch_of(whole({3, 11}).view({1, 2})), {});
            }),
            "expected tokens from 0 to 10, got 11");
  const auto state = model->start(2, {});
  EXPECT_EQ(message_of([&] { model->extend(*state, random_tokens(3, 1, 11)); }),
            "expected tokens [B, N] with B = 2 and N >= 1");
  EXPECT_EQ(message_of([&] {
              model->extend(*state, random_tokens(2, 3, 11), whole({4, 1}));
            }),
            "expected lengths [B] from 0 to N = 3");
}

}  // namespace
}  // namespace lagwise
