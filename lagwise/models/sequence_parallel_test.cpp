// Whole models over ranks: each computes some columns of a batch, and the sum of their
// losses and of their parameters' gradients is that of one process, to 1e-10 in double,
// with dropout on.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/dist/thread_peers.h"
#include "lagwise/models/shard.h"
#include "lagwise/models/testing_models.h"
#include "lagwise/ops/precision.h"

namespace lagwise {
namespace {

using at::Tensor;
using dist::run_together;
using dist::ThreadPeers;
using testing::batch_of;
using ::testing::HasSubstr;
using testing::message_of;
using testing::random_tokens;
using testing::small_model;

const Draw kSharedDraw = {.seed = 2, .step = 4};

std::shared_ptr<Model> training_model(ModelConfig config,
                                      at::ScalarType type = at::kDouble) {
  config.dropout = 0.2;
  auto model = make_model(config);
  model->to(type);
  model->train();
  return model;
}

/// A loss and its gradient by every parameter.
struct Trained {
  Tensor loss;
  std::vector<Tensor> gradients;
  int64_t count = 0;
};

Trained trained(Model& model, const Batch& batch) {
  const Loss loss = model.loss(batch, kSharedDraw);
  const std::vector<Tensor> parameters = model.parameters();
  Trained found{loss.sum.detach(),
                torch::autograd::grad({loss.sum}, parameters, {}, false, false, true),
                loss.count};
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!found.gradients[i].defined())
      found.gradients[i] = at::zeros_like(parameters[i]);
  return found;
}

/// What each rank finds of its columns.
std::vector<Trained> by_rank(Model& model, const Batch& whole, int size,
                             int64_t patch = 1) {
  std::vector<Trained> found(static_cast<size_t>(size));
  run_together(size, [&](const ThreadPeers& peers) {
    const Columns columns = columns_of(whole.tokens.size(1), peers.rank(), size, patch);
    found[static_cast<size_t>(peers.rank())] =
        trained(model, shard(whole, columns, peers));
  });
  return found;
}

void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE((got - want).abs().max().item<double>(),
            1e-10 * std::max(1.0, want.abs().max().item<double>()))
      << what;
}

void expect_ranks_equal_one_process(const ModelConfig& config, const Batch& batch) {
  const auto model = training_model(config);
  const Trained want = trained(*model, batch);
  for (const int size : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(std::to_string(size) + " ranks");
    const std::vector<Trained> found = by_rank(*model, batch, size);
    Trained sum = found[0];
    for (size_t p = 1; p < found.size(); ++p) {
      sum.loss = sum.loss + found[p].loss;
      sum.count += found[p].count;
      for (size_t i = 0; i < sum.gradients.size(); ++i)
        sum.gradients[i] = sum.gradients[i] + found[p].gradients[i];
    }
    EXPECT_EQ(sum.count, want.count);
    expect_near(sum.loss, want.loss, "loss");
    const auto names = model->named_parameters().keys();
    for (size_t i = 0; i < names.size(); ++i)
      expect_near(sum.gradients[i], want.gradients[i], names[i]);
  }
}

Batch text(int64_t n) {
  Batch batch = batch_of(random_tokens(2, n, 11, 1));
  batch.targets = random_tokens(2, n, 11, 2);
  batch.targets[1].slice(0, n - 2).fill_(-1);
  return batch;
}

/// 5 columns: of 8 ranks some have none.
TEST(SequenceParallelModel, DecoderEqualsOneProcess) {
  const struct {
    const char *encoding, *attention;
  } cases[] = {{"rope:layout=half", "linear:map=elu1"},
               {"sine_spe:decay=alibi", "linear:map=favor:features=6"},
               {"sinusoidal", "gated_deltanet"},
               {"conv_spe", testing::kSigned},
               {"t5", "exact"},
               {"learned", "forgetting_transformer"},
               {"decay", "linear:map=elu1|exact:window=4"}};
  for (const auto& one : cases)
    for (const int64_t n : {5, 23}) {
      SCOPED_TRACE(std::string(one.encoding) + " with " + one.attention);
      expect_ranks_equal_one_process(
          small_model("decoder_lm", one.encoding, one.attention), text(n));
    }
}

TEST(SequenceParallelModel, MaskedModelEqualsOneProcess) {
  Batch batch = text(23);
  batch.targets.clamp_(-1, 9);  // the mask is no answer
  for (const char* attention : {"linear:map=elu1", "exact"}) {
    SCOPED_TRACE(attention);
    expect_ranks_equal_one_process(
        small_model("encoder_lm", "rope:layout=half", attention), batch);
  }
}

/// Of a class the loss counts once, and pooling reaches over all ranks.
TEST(SequenceParallelModel, ClassifierEqualsOneProcess) {
  Batch batch = batch_of(random_tokens(2, 14, 11), testing::whole({14, 3}));
  batch.targets = testing::whole({2, 0});
  for (const char* pooling : {"mean", "cls"})
    for (const char* attention : {"linear:map=elu1", "exact"})
      for (const bool ragged : {true, false}) {
        SCOPED_TRACE(std::string(pooling) + " of " + attention);
        ModelConfig config = small_model("classifier", "rope:layout=half", attention);
        config.pooling = pooling;
        Batch given = batch;
        if (!ragged) given.lengths = Tensor();
        expect_ranks_equal_one_process(config, given);
      }
}

/// Threads arrive in any order, and sums do not depend on it.
TEST(SequenceParallelModel, TheSameSplitGivesTheSameBits) {
  for (const char* attention : {"linear:map=elu1", "gated_deltanet", "exact"}) {
    const auto model = training_model(small_model("decoder_lm", "none", attention));
    const Batch batch = text(23);
    const auto first = by_rank(*model, batch, 4), second = by_rank(*model, batch, 4);
    for (size_t p = 0; p < first.size(); ++p) {
      EXPECT_TRUE(first[p].loss.equal(second[p].loss));
      for (size_t i = 0; i < first[p].gradients.size(); ++i)
        EXPECT_TRUE(first[p].gradients[i].equal(second[p].gradients[i]));
    }
  }
}

/// One rank is nobody to share with: nothing is computed in another way.
TEST(SequenceParallelModel, OneRankHasTheBitsOfOneProcess) {
  for (const char* attention : {"linear:map=elu1", "gated_deltanet", "exact"}) {
    const auto model = training_model(small_model("decoder_lm", "none", attention));
    const Trained want = trained(*model, text(9)), got = by_rank(*model, text(9), 1)[0];
    EXPECT_TRUE(got.loss.equal(want.loss));
    for (size_t i = 0; i < want.gradients.size(); ++i)
      EXPECT_TRUE(got.gradients[i].equal(want.gradients[i]));
  }
}

/// As `train.precision` has it: f32, with rows and weights rounded to bf16 where they are
/// multiplied. Ranks round other numbers than one process, so they agree to that.
TEST(SequenceParallelModel, RowsInBf16AgreeToTheirRounding) {
  for (const char* attention : {"linear:map=elu1", "gated_deltanet", "exact"}) {
    SCOPED_TRACE(attention);
    const auto model =
        training_model(small_model("decoder_lm", "alibi", attention), at::kFloat);
    const Batch batch = text(23);
    const auto rounded = [&](const Batch& part) {
      const ops::WithPrecision bf16(ops::Precision::bf16);
      return model->loss(part, kSharedDraw).sum;
    };
    const double want = rounded(batch).item<double>();
    std::vector<double> got(3);
    run_together(3, [&](const ThreadPeers& peers) {
      const Tensor loss = rounded(shard(batch, columns_of(23, peers.rank(), 3), peers));
      const auto gradients = torch::autograd::grad({loss}, model->parameters(), {},
                                                   false, false, /*allow_unused=*/true);
      for (const Tensor& one : gradients)
        EXPECT_TRUE(!one.defined() || at::isfinite(one).all().item<bool>());
      got[static_cast<size_t>(peers.rank())] = loss.item<double>();
    });
    EXPECT_NEAR(got[0] + got[1] + got[2], want, 0.01 * want);
  }
}

/// What a rank gives to others in a step of a decoder, in both directions.
int64_t traffic(Model& model, int64_t n) {
  int64_t bytes = 0;
  run_together(4, [&](const ThreadPeers& peers) {
    const Columns columns = columns_of(n, peers.rank(), 4);
    trained(model, shard(text(n), columns, peers));
    if (peers.rank() == 1) bytes = peers.bytes_sent();
  });
  return bytes;
}

TEST(SequenceParallelModel, TrafficOfLinearAttentionDoesNotDependOnTheLength) {
  for (const char* attention : {"linear:map=elu1", "gated_deltanet"}) {
    const auto model = training_model(small_model("decoder_lm", "alibi", attention));
    EXPECT_EQ(traffic(*model, 16), traffic(*model, 400)) << attention;
  }
}

TEST(SequenceParallelModel, RefusesWhatRanksCannotShare) {
  const auto refusal = [](const ModelConfig& config, Batch batch) {
    batch.targets = testing::whole({2, 0});
    batch.source = random_tokens(2, 4, 11);
    const auto model = training_model(config);
    return message_of([&] { by_rank(*model, batch, 2); });
  };
  const Batch batch = batch_of(random_tokens(2, 16, 11));
  EXPECT_THAT(refusal(small_model("encoder_decoder", "none", "exact"), batch),
              HasSubstr("without cross attention"));
  EXPECT_THAT(refusal(small_model("dual_encoder", "none", "exact"), batch),
              HasSubstr("dual_encoder: expected whole texts"));
  ModelConfig image = small_model("classifier", "rope:layout=half", "exact");
  image.grid = {4, 4};
  EXPECT_THAT(refusal(image, batch), HasSubstr("got a grid"));
  EXPECT_THAT(refusal(small_model("classifier", "t5", "linear:map=elu1"), batch),
              HasSubstr("got one by lag"));
}

TEST(SequenceParallelModel, NamesRowsThatDoNotFollowEachOther) {
  const auto model = training_model(small_model("decoder_lm", "none", "exact"));
  EXPECT_EQ(message_of([&] {
              run_together(2, [&](const ThreadPeers& peers) {
                model->loss(shard(text(9), {0, 4}, peers), kSharedDraw);
              });
            }),
            "expected the rows of rank 1 to begin at position 4, got 0");
}

TEST(Shard, SpreadsColumnsEvenlyInWholePatches) {
  int64_t next = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const Columns one = columns_of(30, rank, 4, 3);
    EXPECT_EQ(one.begin, next);
    EXPECT_EQ((one.end - one.begin) % 3, 0);
    EXPECT_GE(one.end - one.begin, 6);
    next = one.end;
  }
  EXPECT_EQ(next, 30);
  EXPECT_THAT(message_of([] { columns_of(31, 0, 4, 3); }), HasSubstr("patches of 3"));
}

}  // namespace
}  // namespace lagwise
