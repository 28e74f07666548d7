// Contract 1 over ranks: however the rows of a sequence are spread over 1, 2, 3, 4 or 8
// ranks, a layer of every attention with every encoding it serves computes what one
// process computes, results and all gradients, to 1e-10 in double. Some shards are short,
// some empty.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>

#include "lagwise/dist/thread_peers.h"
#include "lagwise/nn/attention_presets.h"
#include "lagwise/nn/multi_head_attention.h"
#include "lagwise/ops/peer_rows.h"

namespace lagwise::nn {
namespace {

using at::Tensor;
using dist::run_together;
using dist::ThreadPeers;
using Shards = std::vector<int64_t>;

constexpr int64_t kModel = 5, kHeads = 2, kKeys = 4, kValues = 3, kRows = 11;

const std::vector<Shards> kSplits = {
    {11}, {3, 8}, {5, 0, 6}, {1, 2, 1, 7}, {2, 0, 1, 4, 0, 0, 3, 1}};

/// Every attention of the registry, every preset, and options that exchange something of
/// their own.
std::vector<std::string> attention_texts() {
  std::vector<std::string> all = {
      "linear:map=favor:features=6",
      "linear:map=cosformer",
      "linear:map=none,denominator=none,norm=layer_concat,qk_bias=true",
      "linear:map=favor:features=6,forget=gated,clocks=2..9",
      "linear:map=elu1,forget=gated,clocks=2..9,write=delta",
      "exact:forget=gated,clocks=2..9,window=3,conv=2,gate_output=true"};
  for (const MixerRow& row : mixers()) all.emplace_back(row.name);
  for (const AttentionPreset& preset : attention_presets())
    all.emplace_back(preset.name);
  return all;
}

std::vector<std::string> encoding_texts() {
  std::vector<std::string> all = {"decay:kind=learned", "lrpe:decay=retnet",
                                  "sine_spe:decay=alibi", "rope:layout=half,xpos=true"};
  for (const EncodingRow& row : encodings()) all.emplace_back(row.text());
  return all;
}

/// A layer in double, its gates and convolutions far from where they begin.
struct SharedLayer {
  std::shared_ptr<Encoding> encoding;
  std::shared_ptr<MultiHeadAttention> layer;
  bool causal;

  /// std::invalid_argument where the two do not go together.
  SharedLayer(const std::string& attention, const std::string& text, bool is_causal)
      : causal(is_causal) {
    encoding = make_encoding_for(attention, text,
                                 {.heads = kHeads,
                                  .dim = kKeys,
                                  .model_dim = kModel,
                                  .value_dim = kValues,
                                  .seed = 5});
    AttentionConfig config;
    config.dim = kModel, config.heads = kHeads, config.causal = causal;
    config.key_dim = kKeys, config.value_dim = kValues;
    config.attention = attention, config.encoding_text = text;
    Initial initial{4};
    layer = std::make_shared<MultiHeadAttention>(config, encoding, initial);
    layer->to(at::kDouble);
    for (const auto& [name, x] : encoding->shared())
      x.set_data(x.to(at::kDouble)), x.requires_grad_(true);
    const at::NoGradGuard no_graph;
    at::manual_seed(8);
    for (const auto& one : layer->named_parameters())
      for (const char* part : {"forget.", "write.", "conv.", "norm_gain", "_bias"})
        if (one.key().find(part) != std::string::npos)
          one.value().add_(at::randn_like(one.value()), 0.4);
  }

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all;
    for (const Tensor& x : layer->parameters())
      if (x.requires_grad()) all.push_back(x);
    for (const auto& [name, x] : encoding->shared()) all.push_back(x);
    return all;
  }

  /// Rows x at `start`, through what an encoding adds to the input and the layer.
  Tensor rows(const Tensor& x, int64_t start, const Tensor& lengths,
              const ops::Peers* peers, const Shards& shards) const {
    Pass pass;
    pass.draw = {.seed = 3};
    pass.at = {
        .query_start = start, .key_start = start, .causal = causal, .horizon = 16};
    pass.code = encoding->code(pass.at, pass.draw, x.size(1), x.size(1));
    pass.lengths = lengths, pass.peers = peers, pass.shards = shards;
    const Tensor y = encoding->embed(x, pass.at);
    return layer->forward(y, y, pass);
  }
};

/// A loss that differs from row to row, by the input and by each parameter.
struct Outcome {
  Tensor out, input;
  std::vector<Tensor> parameters;
};

Outcome outcome(const SharedLayer& subject, const Tensor& rows, int64_t start,
                const Tensor& lengths, const ops::Peers* peers, const Shards& shards) {
  const Tensor x = rows.detach().clone().requires_grad_(true);
  const Tensor out = subject.rows(x, start, lengths, peers, shards);
  const Tensor place =
      at::arange(start, start + x.size(1), at::kDouble).view({1, -1, 1});
  const Tensor loss = ((out + place).sin() * (place + 1).cos()).sum();
  std::vector<Tensor> leaves = subject.parameters();
  leaves.push_back(x);
  auto gradients = torch::autograd::grad({loss}, leaves, {}, false, false, true);
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(leaves[i]);
  Outcome found{out.detach(), gradients.back(), {}};
  gradients.pop_back();
  found.parameters = std::move(gradients);
  return found;
}

void expect_near(const Tensor& got, const Tensor& want, const char* what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  if (want.numel() == 0) return;
  EXPECT_LE((got - want).abs().max().item<double>(),
            1e-10 * std::max(1.0, want.abs().max().item<double>()))
      << what;
}

void expect_split_equals_whole(const SharedLayer& subject, const Tensor& x,
                               const Tensor& lengths, const Shards& shards) {
  const Outcome want = outcome(subject, x, 0, lengths, nullptr, {});
  std::vector<Outcome> got(shards.size());
  run_together(static_cast<int>(shards.size()), [&](const ThreadPeers& peers) {
    const int64_t from = ops::rows_to(shards, peers.rank());
    const int64_t to = ops::rows_to(shards, peers.rank() + 1);
    const Tensor real =
        lengths.defined() ? (lengths - from).clamp(0, to - from) : lengths;
    got[static_cast<size_t>(peers.rank())] =
        outcome(subject, x.slice(1, from, to), from, real, &peers, shards);
  });
  std::vector<Tensor> out, input;
  for (const Outcome& one : got) out.push_back(one.out), input.push_back(one.input);
  expect_near(at::cat(out, 1), want.out, "results");
  expect_near(at::cat(input, 1), want.input, "gradient of the input");
  for (size_t i = 0; i < want.parameters.size(); ++i) {
    Tensor sum = got[0].parameters[i];
    for (size_t p = 1; p < got.size(); ++p) sum = sum + got[p].parameters[i];
    expect_near(sum, want.parameters[i], "gradient of a parameter");
  }
}

Tensor input_rows() {
  at::manual_seed(2);
  return at::randn({2, kRows, kModel}, at::kDouble);
}

/// Whether the two go together at all in one process, and whether ranks can share a
/// sequence of theirs: all can but linear attention whose encoding is a factor for every
/// lag.
enum class Sharing { none, refused, served };

Sharing sharing(const std::string& attention, const std::string& text, bool causal) {
  try {
    outcome(SharedLayer(attention, text, causal), input_rows(), 0, {}, nullptr, {});
  } catch (const std::invalid_argument&) {  // refused when made,
    return Sharing::none;
  } catch (const c10::Error&) {  // or by the operator, such as a decay per channel
    return Sharing::none;
  }
  const Traits traits = make_encoding(text, {.heads = kHeads, .dim = kKeys})->traits();
  const bool by_lag = traits.by_lag && !(causal && traits.decays);
  const bool exact = Spec(expand_preset(attention)).name() == "exact";
  return by_lag && !exact ? Sharing::refused : Sharing::served;
}

void expect_every_pair_shares(bool causal, size_t least) {
  const Tensor x = input_rows();
  size_t pairs = 0;
  for (const std::string& attention : attention_texts())
    for (const std::string& text : encoding_texts()) {
      if (sharing(attention, text, causal) != Sharing::served) continue;
      SCOPED_TRACE(text + " with " + attention);
      const SharedLayer subject(attention, text, causal);
      for (const Shards& shards : kSplits)
        expect_split_equals_whole(subject, x, {}, shards);
      ++pairs;
    }
  EXPECT_GE(pairs, least);
}

TEST(SequenceParallel, EveryCausalPairEqualsOneProcess) {
  expect_every_pair_shares(true, 180);
}

TEST(SequenceParallel, EveryFullPairEqualsOneProcess) {
  expect_every_pair_shares(false, 50);
}

/// Sequences of different lengths, one of which ends in the first shard.
TEST(SequenceParallel, PaddingEndsWhereItDoesInOneProcess) {
  const Tensor lengths = at::tensor({9, 2}, at::kLong), x = input_rows();
  for (const bool causal : {true, false})
    for (const char* attention : {"linear", "exact", "linear:map=favor:features=6"})
      for (const char* text :
           {"none", "rope:layout=half", "sine_spe", "alibi", "shaw"}) {
        if (sharing(attention, text, causal) != Sharing::served) continue;
        SCOPED_TRACE(std::string(text) + " with " + attention);
        for (const Shards& shards : kSplits)
          expect_split_equals_whole(SharedLayer(attention, text, causal), x, lengths,
                                    shards);
      }
}

TEST(SequenceParallel, RefusesFactorsForEveryLagInLinearAttention) {
  int refused = 0;
  for (const bool causal : {true, false})
    for (const std::string& text : encoding_texts()) {
      if (sharing("linear", text, causal) != Sharing::refused) continue;
      const SharedLayer subject("linear", text, causal);
      try {
        run_together(1, [&](const ThreadPeers& peers) {
          outcome(subject, input_rows(), 0, {}, &peers, {kRows});
        });
        FAIL() << text;
      } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("got one by lag"));
      }
      ++refused;
    }
  EXPECT_GE(refused, 4);  // t5 and kerple in both, decays where attention is full
}

}  // namespace
}  // namespace lagwise::nn
