// Encodings whose scores carry a factor for every lag, against the definition over all
// pairs in double:
//
//     exact   w_ij = exp(q_i . k_j scale + b(lag))
//     linear  w_ij = phi(q_i) . phi(k_j) exp(b(lag)),  phi = 1 + elu
//     o_i = sum_j w_ij v_j / sum_j w_ij,   causal: over j <= i

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lagwise/encodings/head_decay.h"
#include "lagwise/nn/mixer.h"

namespace lagwise::nn {
namespace {

using at::Tensor;

constexpr int64_t kHeads = 2, kDim = 4;
const HeadShape kShape{.heads = kHeads, .dim = kDim, .seed = 5};

Tensor rows(int64_t n, uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({2, kHeads, n, kDim}, at::kDouble);
}

/// One attention of one layer with its encoding, parameters in double.
struct Made {
  std::shared_ptr<Encoding> encoding;
  Layer layer;
  std::unique_ptr<Mixer> mixer;

  Made(const std::string& attention, const std::string& text, bool causal)
      : encoding(make_encoding_for(attention, text, kShape)),
        layer{0, 1, encoding->layer(0, 1)} {
    for (const Parameters& some : {layer.own, encoding->shared()})
      for (const auto& [name, x] : some)
        x.set_data(x.to(at::kDouble)), x.requires_grad_(true);
    mixer = make_mixer(attention, {.shape = kShape, .causal = causal}, text, encoding,
                       layer);
  }

  Pass pass(int64_t start, int64_t n, bool causal) const {
    Pass pass;
    pass.at = {.query_start = start, .key_start = start, .causal = causal};
    pass.code = encoding->code(pass.at, {}, n, n);
    return pass;
  }
};

/// b(lag) of n rows, [H, n, n]: log g |lag| of a decay by its schedule, of others as
/// the encoding hands it over.
Tensor bias_of(Made& made, const std::string& text, int64_t n, bool causal) {
  const Tensor i = at::arange(n, at::kLong);
  const Tensor lag = i.unsqueeze(1) - i;
  if (text.find("retnet") != std::string::npos)
    return head_decay("retnet", kHeads, 0, 1).view({-1, 1, 1}) * lag.abs();
  const Pass pass = made.pass(0, n, causal);
  const Tensor q = rows(n, 1);
  const Encoded e = made.encoding->encode(q, q, pass.code, made.layer, pass.at);
  return e.lag_bias.index_select(1, (lag + (n - 1)).reshape(-1)).view({-1, n, n});
}

Tensor defined(Made& made, const std::string& attention, const std::string& text,
               const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const int64_t n = q.size(2);
  const Tensor bias = bias_of(made, text, n, causal);
  const Tensor seen = causal ? at::ones({n, n}, at::kDouble).tril() : at::Tensor();
  const auto phi = [](const Tensor& x) { return at::elu(x) + 1; };
  Tensor weight;
  if (attention == "exact") {
    const Pass pass = made.pass(0, n, causal);
    const Encoded e = made.encoding->encode(q, k, pass.code, made.layer, pass.at);
    weight = (at::matmul(e.q, e.k.transpose(2, 3)) * e.scale + bias).exp();
  } else {
    weight = at::matmul(phi(q), phi(k).transpose(2, 3)) * bias.exp();
  }
  if (causal) weight = weight * seen;
  return at::matmul(weight, v) / weight.sum(-1, true);
}

struct Case {
  const char *attention, *encoding;
  bool causal;
};

/// Those that were refused once, and neighbours that never were.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"exact", "decay:kind=retnet", true},
      {"exact", "decay:kind=retnet", false},
      {"exact", "lrpe:decay=retnet", true},
      {"exact", "lrpe:decay=retnet", false},
      {"exact", "sinusoidal:decay=retnet", true},
      {"exact", "sinusoidal:decay=retnet", false},
      {"linear:eps=0", "decay:kind=retnet", true},
      {"linear:eps=0", "decay:kind=retnet", false},
      {"linear:eps=0", "sinusoidal:decay=retnet", true},
      {"linear:eps=0", "sinusoidal:decay=retnet", false},
      {"linear:eps=0", "t5", true},
      {"linear:eps=0", "t5", false},
      {"linear:eps=0", "kerple", true},
      {"linear:eps=0", "kerple:kind=power", true},
      {"linear:eps=0", "kerple", false}};
  return all;
}

template <class Act>
void for_each_case(const Act& act) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(std::string(c.causal ? "causal " : "full ") + c.attention + " with " +
                 c.encoding);
    Made made(c.attention, c.encoding, c.causal);
    act(made, c);
  }
}

TEST(MixerByLag, WeighsPairsByTheirLag) {
  for_each_case([](Made& made, const Case& c) {
    for (const int64_t n : {1, 7, 150}) {  // pair by pair and by FFT
      SCOPED_TRACE(n);
      const Tensor q = rows(n, 1), k = rows(n, 2), v = rows(n, 3);
      const Tensor want = defined(made, c.attention, c.encoding, q, k, v, c.causal);
      const Tensor got = made.mixer->mix({q, k, v}, made.pass(0, n, c.causal));
      EXPECT_LT((got - want).abs().max().item<double>(), 1e-9);
    }
  });
}

TEST(MixerByLag, SendsTheGradientsOfItsDefinition) {
  for_each_case([](Made& made, const Case& c) {
    for (const int64_t n : {7, 90}) {
      SCOPED_TRACE(n);
      const Tensor g = rows(n, 4);
      const auto gradients = [&](bool by_definition) {
        std::vector<Tensor> inputs = {rows(n, 1), rows(n, 2), rows(n, 3)};
        for (Tensor& x : inputs) x.requires_grad_(true);
        const Tensor out = by_definition
                               ? defined(made, c.attention, c.encoding, inputs[0],
                                         inputs[1], inputs[2], c.causal)
                               : made.mixer->mix({inputs[0], inputs[1], inputs[2]},
                                                 made.pass(0, n, c.causal));
        for (const Parameters& some : {made.layer.own, made.encoding->shared()})
          for (const auto& [name, x] : some)
            x.mutable_grad() = Tensor(), inputs.push_back(x);
        (out * g).sum().backward();
        std::vector<Tensor> found;
        for (const Tensor& x : inputs) found.push_back(x.grad().clone());
        return found;
      };
      const auto want = gradients(true), got = gradients(false);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(at::allclose(got[i], want[i], 1e-7, 1e-9)) << "input " << i;
    }
  });
}

TEST(MixerByLag, GivesTheSameInAnySplit) {
  for_each_case([](Made& made, const Case& c) {
    if (!c.causal) return;
    const c10::InferenceMode no_graph;
    const int64_t n = 90;
    const Tensor q = rows(n, 1), k = rows(n, 2), v = rows(n, 3);
    const Tensor want = made.mixer->mix({q, k, v}, made.pass(0, n, true));
    for (const int64_t piece : {1, 13, 70}) {
      const auto state = made.mixer->start(2);
      for (int64_t at = 0; at < n; at += piece) {
        const int64_t count = std::min(piece, n - at);
        const auto some = [&](const Tensor& x) { return x.narrow(2, at, count); };
        const Tensor got = made.mixer->extend(*state, {some(q), some(k), some(v)},
                                              made.pass(at, count, true));
        EXPECT_LT((got - some(want)).abs().max().item<double>(), 1e-9)
            << "row " << at << " in pieces of " << piece;
      }
      EXPECT_GT(state->bytes(), 0);
    }
  });
}

TEST(MixerByLag, TakesNoRowsAtAll) {
  for_each_case([](Made& made, const Case& c) {
    const Tensor x = rows(0, 1);
    EXPECT_EQ(made.mixer->mix({x, x, x}, made.pass(0, 0, c.causal)).numel(), 0);
  });
}

TEST(MixerByLag, CountsKeysByTheScaleOfTheirFeatures) {
  const char* favor = "linear:map=favor:features=16";
  Made made(favor, "t5", true);
  const c10::InferenceMode no_graph;
  const Tensor q = 3 * rows(80, 1), k = 3 * rows(80, 2), v = rows(80, 3);
  const Tensor want = made.mixer->mix({q, k, v}, made.pass(0, 80, true));
  const auto state = made.mixer->start(2);
  for (const auto& [at, count] : {std::pair{0, 60}, {60, 0}, {60, 1}, {61, 19}}) {
    const auto some = [&, at = at, count = count](const Tensor& x) {
      return x.narrow(2, at, count);
    };
    const Tensor got = made.mixer->extend(*state, {some(q), some(k), some(v)},
                                          made.pass(at, count, true));
    if (count == 0) continue;
    EXPECT_LT((got - some(want)).abs().max().item<double>(), 1e-4) << at;
  }
}

}  // namespace
}  // namespace lagwise::nn
