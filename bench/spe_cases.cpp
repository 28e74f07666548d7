// What `lagwise bench encodings` measures of SineSPE. Our calls are whole ones: the
// noise is drawn, the parameters are transformed, queries and keys are encoded.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>

#include "bench/encoding_cases.h"
#include "bench/materialised_spe.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/ops/linear_attention.h"

namespace lagwise::bench {
namespace {

using at::Tensor;

/// Shares of the matrix product's rate, as in floors.cpp: on one thread the baseline
/// reached 0.0374 and 0.0240.
constexpr double kForwardFloor = 0.022, kBothFloor = 0.014;

Shape shape_of(int64_t batch, int64_t n) {
  return {n, kHeads, kWidth, kRealizations, batch};
}

/// One layer with an encoding, and what it is given. A new draw at each call, as in
/// training, unless it is frozen, as in generation.
struct Bench {
  Bench(const std::string& text, const Shape& s, bool with_gradients)
      : encoding(make_encoding(text, {.heads = s.heads, .dim = s.d})),
        layer{0, 1, encoding->layer(0, 1)},
        q(at::randn({s.batch, s.heads, s.n, s.d})),
        k(at::randn({s.batch, s.heads, s.n, s.d})) {
    leaves = {q, k};
    for (const auto& [name, x] : encoding->shared()) leaves.push_back(x);
    for (const auto& [name, x] : layer.own) leaves.push_back(x);
    for (Tensor& x : leaves) x.set_requires_grad(with_gradients);
  }

  Encoded encode(const Placement& at = {}) {
    return encode_once(*encoding, q, k, at, draw, &layer);
  }

  std::unique_ptr<Encoding> encoding;
  Layer layer;
  Tensor q, k;
  torch::autograd::variable_list leaves;
  Draw draw;
};

std::shared_ptr<Bench> make(const std::string& text, const Shape& s,
                            bool with_gradients = false) {
  return std::make_shared<Bench>(text, s, with_gradients);
}

Call our_forward(const std::shared_ptr<Bench>& bench) {
  return [bench]() -> std::vector<Tensor> {
    ++bench->draw.step;
    const Encoded e = bench->encode();
    return {e.q, e.k};
  };
}

std::pair<Tensor, Tensor> materialise(const Bench& bench) {
  const auto& x = bench.leaves;  // q, k, frequencies, offsets, gains, gate
  return materialised_spe(x[0], x[1], {x[2], x[3], x[4], x[5]}, kRealizations, Tensor(),
                          Tensor());
}

Call their_forward(const std::shared_ptr<Bench>& bench) {
  return [bench]() -> std::vector<Tensor> {
    const auto [q, k] = materialise(*bench);
    return {q, k};
  };
}

/// Forward and back with given gradients of q' and k'.
template <class Forward>
Call both(const std::shared_ptr<Bench>& bench, const Forward& forward) {
  const Shape s = shape_of(bench->q.size(0), bench->q.size(2));
  const Tensor grad = at::rand({s.batch, s.heads, s.n, kRealizations});
  return [bench, forward, grad]() -> std::vector<Tensor> {
    const at::AutoGradMode graph(true);
    const auto [q, k] = forward();
    return torch::autograd::grad({q, k}, bench->leaves, {grad, grad});
  };
}

/// Multiply-adds with Z alone, times two: 2 (2K+1) D R flops a side and position.
double gflop(const Shape& s) {
  return 1e-9 * 2 * 2 * double((2 * kSines + 1) * kWidth * kRealizations) *
         double(s.batch * s.heads * s.n);
}

void against_materialised(Comparer& comparer, int threads) {
  const int64_t n = comparer.quick() ? 512 : 2048;
  for (const int64_t batch : {1, 4}) {
    const Shape s = shape_of(batch, n);
    const auto bench = make("sine_spe", s);
    Baseline peer{"materialised", their_forward(bench), threads};
    if (batch == 1) peer.floor_share = kForwardFloor;
    comparer.measure({.name = "sine_spe, gaussian",
                      .direction = "forward",
                      .shape = s,
                      .threads = threads,
                      .ours = our_forward(bench),
                      .baselines = {peer},
                      .gflop = gflop(s)});
  }
  const Shape s = shape_of(1, n);
  const auto bench = make("sine_spe", s, true);
  const auto ours = [bench] {
    ++bench->draw.step;
    const Encoded e = bench->encode();
    return std::pair(e.q, e.k);
  };
  Baseline peer{"materialised", both(bench, [bench] { return materialise(*bench); }),
                threads};
  peer.floor_share = kBothFloor;
  comparer.measure({.name = "sine_spe, gaussian",
                    .direction = "forward+backward",
                    .shape = s,
                    .threads = threads,
                    .ours = both(bench, ours),
                    .baselines = {peer},
                    .gflop = 2 * gflop(s)});
}

void sketched(Comparer& comparer, int threads) {
  const int64_t n = comparer.quick() ? 512 : 2048;
  Shape s = shape_of(1, n);
  comparer.measure(
      {.name = "sine_spe:noise=sketch",
       .direction = "forward",
       .shape = s,
       .threads = threads,
       .ours = our_forward(make("sine_spe:noise=sketch", s)),
       .baselines = {{"gaussian", our_forward(make("sine_spe", s)), threads}}});

  s = shape_of(4, n);
  ops::LinearOptions options;
  options.causal = true;
  options.feature_map = "elu1";
  const auto bench = make("sine_spe:noise=sketch", s);
  const Tensor v = at::randn({s.batch, s.heads, n, kRealizations});
  const auto with = [bench, v, options]() -> std::vector<Tensor> {
    ++bench->draw.step;
    const Encoded e = bench->encode();
    return {ops::linear_attention(e.q, e.k, v, options)};
  };
  const Tensor q = at::randn({s.batch, s.heads, n, kRealizations}),
               k = at::randn(q.sizes());
  const auto alone = [q, k, v, options]() -> std::vector<Tensor> {
    return {ops::linear_attention(q, k, v, options)};
  };
  comparer.measure({.name =
                        "sine_spe:noise=sketch + linear attention, elu1 (cost: over "
                        "attention alone, R features)",
                    .direction = "forward",
                    .shape = s,
                    .threads = threads,
                    .ours = with,
                    .baselines = {{"linear", alone, threads}},
                    .is_cost = true});
}

void steps(Comparer& comparer, int threads) {
  for (const std::string noise : {"gaussian", "sketch"}) {
    const auto bench = make("sine_spe:noise=" + noise, shape_of(1, 1));
    const auto at = [bench](int64_t position) -> Call {
      return [bench, position]() -> std::vector<Tensor> {
        const Encoded e =
            bench->encode({.query_start = position, .key_start = position});
        return {e.q, e.k};
      };
    };
    comparer.measure({.name = "sine_spe:noise=" + noise +
                              ", one row at position 1000000 (cost: over 1000)",
                      .direction = "step",
                      .shape = shape_of(1, 1),
                      .threads = threads,
                      .ours = at(1'000'000),
                      .baselines = {{"position_1000", at(1000), threads}},
                      .is_cost = true});
  }
}

void sine_spe_cases(Comparer& comparer, int threads) {
  against_materialised(comparer, threads);
  sketched(comparer, threads);
  steps(comparer, threads);
}

const RegisterEncodingCases registered("sine_spe", sine_spe_cases);

}  // namespace
}  // namespace lagwise::bench
