#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lagwise/ops/linear_attention.h"

/// Test support: everything one call of linear attention takes, with random
/// numbers in it and in any memory layout.
namespace lagwise::ops::testing {

/// A call and the gradients that its results receive.
struct Problem {
  at::Tensor q, k, v;
  LinearOptions options;
  LinearState from;
  at::Tensor grad_out, grad_s, grad_z;
};

/// Every tensor a gradient can flow into, by name.
struct NamedTensor {
  std::string name;
  at::Tensor* tensor;
};
inline std::vector<NamedTensor> inputs(Problem& p) {
  std::vector<NamedTensor> all = {{"q", &p.q},
                                  {"k", &p.k},
                                  {"v", &p.v},
                                  {"q_norm", &p.options.q_norm},
                                  {"k_norm", &p.options.k_norm},
                                  {"decay", &p.options.decay},
                                  {"s", &p.from.s},
                                  {"z", &p.from.z},
                                  {"log_decay", &p.options.log_decay},
                                  {"write_strength", &p.options.write_strength}};
  std::erase_if(all, [](const NamedTensor& x) { return !x.tensor->defined(); });
  return all;
}

/// Numbers that f32 represents exactly, so that every dtype sees the same ones.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  at::Tensor normal(at::IntArrayRef shape) {
    std::normal_distribution<float> draw;
    return fill(shape, draw);
  }
  at::Tensor uniform(at::IntArrayRef shape, float low, float high) {
    std::uniform_real_distribution<float> draw(low, high);
    return fill(shape, draw);
  }

 private:
  template <class Draw>
  at::Tensor fill(at::IntArrayRef shape, Draw& draw) {
    at::Tensor t = at::empty(shape, at::kDouble);
    double* to = t.data_ptr<double>();
    for (int64_t i = 0; i < t.numel(); ++i) to[i] = static_cast<double>(draw(bits_));
    return t;
  }
  std::mt19937_64 bits_;
};

/// Sizes of a random problem; the rest of it follows from its options.
struct Shape {
  int64_t batch = 2, heads = 3, n = 33, m = 33, d = 16, e = 7, f = 5;
};

/// Fills everything that `options` asks for. Features that make a denominator
/// are positive, as in real use, so that it stays away from zero.
/// decay_axes: 0 none, 1 [H], 2 [H, D]; then F = D, as the operator requires.
inline Problem random_problem(Shape x, LinearOptions options, int decay_axes,
                              bool with_state, uint64_t seed = 1) {
  Random random(seed);
  const int64_t b = x.batch, h = x.heads;
  const bool none = options.denominator == "none", same = options.denominator == "same";
  if (decay_axes == 2) x.f = x.d;
  const auto features = [&](int64_t rows, int64_t width, bool positive) {
    const bool bare = options.feature_map == "none";
    return bare && positive ? random.uniform({b, h, rows, width}, 0.2F, 1.2F)
                            : random.normal({b, h, rows, width});
  };
  Problem p{features(x.n, x.d, same),
            features(x.m, x.d, same),
            random.normal({b, h, x.m, x.e}),
            options,
            {},
            {},
            {},
            {}};
  if (!none && !same) {
    p.options.q_norm = features(x.n, x.f, true);
    p.options.k_norm = features(x.m, x.f, true);
  }
  // From nearly no decay to a factor of 0.4 per step.
  if (decay_axes == 1) p.options.decay = random.uniform({h}, -0.9F, -0.001F);
  if (decay_axes == 2) p.options.decay = random.uniform({h, x.d}, -0.9F, -0.001F);
  const int64_t z_width = none ? 0 : same ? x.d : x.f;
  if (with_state) p.from.s = random.normal({b, h, x.d, x.e});
  if (with_state) p.from.z = random.uniform({b, h, z_width}, 0.5F, 2.0F);
  p.grad_out = random.normal({b, h, x.n, x.e});
  p.grad_s = random.normal({b, h, x.d, x.e});
  p.grad_z = random.normal({b, h, z_width});
  return p;
}

/// Applies `change` to every tensor of a problem, gradients included.
template <class Change>
Problem map_tensors(Problem p, const Change& change) {
  for (const NamedTensor& x : inputs(p)) *x.tensor = change(*x.tensor);
  for (at::Tensor* grad : {&p.grad_out, &p.grad_s, &p.grad_z}) *grad = change(*grad);
  return p;
}

inline Problem cast(const Problem& p, at::ScalarType dtype) {
  return map_tensors(p, [&](const at::Tensor& t) { return t.to(dtype); });
}

}  // namespace lagwise::ops::testing
