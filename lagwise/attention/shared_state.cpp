#include "lagwise/attention/shared_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <stdexcept>

#include "lagwise/ops/feature_map.h"
#include "lagwise/ops/peer_rows.h"
#include "lagwise/ops/precision.h"
#include "lagwise/ops/recompute.h"
#include "lagwise/ops/torch/graph_step.h"

namespace lagwise {
namespace {

using at::Tensor;
using ops::LinearOptions;
using ops::LinearResult;
using ops::LinearState;
using ops::Peers;

constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// s [B, H, D, E] and z [B, H, F] as one row of numbers for each head, [B, H, D E + F].
Tensor packed(const Tensor& s, const Tensor& z) {
  return at::cat({s.flatten(2), z}, 2);
}

/// The inverse, of any number of leading axes.
LinearState unpacked(const Tensor& row, const Tensor& s, const Tensor& z) {
  const int64_t width = s.size(2) * s.size(3);
  return {row.narrow(-1, 0, width).unflatten(-1, {s.size(2), s.size(3)}),
          row.narrow(-1, width, z.size(2))};
}

// ---- the state that the rows of a rank begin with

/// The rows of one rank as a map of states:
///
///     s -> M s + s_p,  z -> M z + z_p,      M = e^fade or, with a `matrix`, that
struct RankMap {
  LinearState own;  ///< s_p, z_p; m_p [B, H] where they stand for s_p e^m_p, z_p e^m_p
  Tensor fade;      ///< [B, H, 1] or [B, H, D]: the log of a factor; -inf is legal
  Tensor matrix;    ///< [B, H, D, D]
};

/// x by factors f [B, H, 1 or D].
LinearState scaled_state(const LinearState& x, const Tensor& f) {
  return {x.s * f.unsqueeze(-1), x.z.size(2) == 0 ? x.z : x.z * f};
}

LinearState sum_of(const LinearState& a, const LinearState& b) {
  return {a.s + b.s, a.z + b.z};
}

/// e^(from - to), and 0 where there was nothing: from = -inf.
Tensor shrunk(const Tensor& from, const Tensor& to) {
  return at::where(from.eq(kNothing), at::zeros_like(from), (from - to).exp());
}

/// The maps of all ranks with numbers alone, in the form  X_{p+1} = a_p X_p + b_p x_p,
/// where X_p is the state before rank p in units of its own largest exponent
/// u_p = max(m_0, .., m_{p-1}): all factors are at most 1.
struct AllMaps {
  std::vector<LinearState> own;  ///< x_p
  std::vector<Tensor> a, b;  ///< [B, H, 1 or D]; a_p a matrix [B, H, D, D] if `square`
  std::vector<Tensor> largest;  ///< u_p [B, H], where there are m_p
  bool square = false;

  LinearState forward(size_t p, const LinearState& x) const {
    return square ? LinearState{at::matmul(a[p], x.s), x.z} : scaled_state(x, a[p]);
  }
  LinearState backward(size_t p, const LinearState& x) const {
    return square ? LinearState{at::matmul(a[p].transpose(2, 3), x.s), x.z}
                  : scaled_state(x, a[p]);
  }
};

/// One gather of D E + F numbers for each head, and one of each that M has.
AllMaps gather_maps(const Peers& peers, const RankMap& mine) {
  const LinearState& own = mine.own;
  const bool has_max = own.m.defined() && own.m.dim() == 2;
  AllMaps all;
  all.square = mine.matrix.defined();
  const Tensor factor = all.square ? mine.matrix.flatten(2) : mine.fade;
  std::vector<Tensor> parts = {packed(own.s, own.z), factor};
  if (has_max) parts.push_back(own.m.unsqueeze(2));
  const Tensor gathered = peers.gather(at::cat(parts, 2).detach().contiguous());
  const int64_t state = parts[0].size(2), width = factor.size(2);
  Tensor u = at::full({own.s.size(0), own.s.size(1)}, kNothing, gathered.options());
  for (int64_t p = 0; p < peers.size(); ++p) {
    const Tensor of_p = gathered[p];
    all.own.push_back(unpacked(of_p.narrow(2, 0, state), own.s, own.z));
    const Tensor m_factor = of_p.narrow(2, state, width);
    all.a.push_back(all.square ? m_factor.view(mine.matrix.sizes()) : m_factor.exp());
    all.b.push_back(Tensor());
    if (!has_max) continue;
    const Tensor m = of_p.select(2, state + width), next = at::maximum(u, m);
    all.a.back() = all.a.back() * shrunk(u, next).unsqueeze(2);
    all.b.back() = shrunk(m, next).unsqueeze(2);
    all.largest.push_back(u);
    u = next;
  }
  return all;
}

/// The gradients of this rank's map: with A_p the gradient of the loss by X_p through
/// all that comes after,
///
///     A_p = dX_p + a_p^T A_{p+1},   dx_r = b_r A_{r+1},   da_r = A_{r+1} X_r^T
///
/// where the dX_p of all ranks are gathered: as many numbers as a state has.
std::vector<Tensor> map_gradients(const Peers& peers, const AllMaps& all,
                                  const LinearState& before, const Tensor& fade,
                                  const std::vector<Tensor>& d) {
  const Tensor gathered = peers.gather(packed(d[0], d[1]).contiguous());
  const auto rank = static_cast<size_t>(peers.rank());
  LinearState later{at::zeros_like(d[0]), at::zeros_like(d[1])};
  for (auto p = static_cast<size_t>(peers.size()); --p > rank;)
    later = sum_of(unpacked(gathered[static_cast<int64_t>(p)], d[0], d[1]),
                   all.backward(p, later));
  Tensor d_factor;
  if (all.square) {
    d_factor = at::matmul(later.s, before.s.transpose(2, 3));
  } else {  // by the log of the factor: da_r a_r
    const LinearState faded = all.forward(rank, before);
    const Tensor of_s = (later.s * faded.s).sum(3), of_z = later.z * faded.z;
    d_factor = fade.size(2) == 1  ? of_s.sum(2, true) + of_z.sum(2, true)
               : of_z.size(2) > 0 ? of_s + of_z
                                  : of_s;
  }
  const LinearState own =
      all.b[rank].defined() ? scaled_state(later, all.b[rank]) : later;
  return {own.s, own.z, d_factor};
}

/// The state before the rows of this rank: the maps of all ranks before it, one after
/// another, applied to nothing. One step of the graph on every rank, the first too.
LinearState state_before(const Peers& peers, const RankMap& mine) {
  AllMaps all = gather_maps(peers, mine);
  const auto rank = static_cast<size_t>(peers.rank());
  LinearState x{at::zeros_like(all.own[0].s), at::zeros_like(all.own[0].z)};
  for (size_t p = 0; p < rank; ++p) {
    const LinearState own =
        all.b[p].defined() ? scaled_state(all.own[p], all.b[p]) : all.own[p];
    x = sum_of(all.forward(p, x), own);
  }
  all.own.clear();  // which the backward pass does not read
  const Tensor fade = mine.fade.defined() ? mine.fade.detach() : mine.fade;
  const auto backward = [&peers, all, x, fade](std::vector<Tensor> d) {
    return map_gradients(peers, all, x, fade, d);
  };
  const auto results = ops::graph_step(
      "state_before", {mine.own.s, mine.own.z, all.square ? mine.matrix : mine.fade},
      {x.s.clone(), x.z.clone()}, backward);
  return {results[0], results[1], all.largest.empty() ? Tensor() : all.largest[rank]};
}

// ---- what the rows of a rank make of nothing

/// How much of each row is left after the last real one of its sequence, in logs.
struct Fading {
  Tensor rows;  ///< [B, H, n, 1 or D]
  Tensor all;   ///< [B, H, 1 or D]: of what was there before the first
};

/// From a fixed decay [H] or [H, D] per row and from gates [B, H, n]; rows that are
/// undefined: nothing fades. Sums of gates run from the end, so that -inf, the border of
/// a document, stays -inf and is never subtracted from itself.
Fading fading_of(const Tensor& k, const LinearOptions& options) {
  const int64_t b = k.size(0), h = k.size(1), n = k.size(2);
  const Tensor place = at::arange(n, at::kLong).view({1, 1, n});
  const Tensor count = options.lengths.defined() ? options.lengths.view({b, 1, 1})
                                                 : at::full({1, 1, 1}, n, at::kLong);
  Fading fading{{}, at::zeros({b, h, 1}, k.options())};
  if (options.decay.defined()) {
    const Tensor per_row = options.decay.reshape({1, h, 1, -1});
    const Tensor later = (count - 1 - place).clamp_min(0).to(k.scalar_type());
    fading.rows = later.unsqueeze(3) * per_row;
    fading.all = fading.all + count.to(k.scalar_type()) * per_row.squeeze(2);
  }
  if (options.log_decay.defined()) {
    const Tensor gates = options.lengths.defined()
                             ? at::where(place.lt(count), options.log_decay,
                                         at::zeros({}, options.log_decay.options()))
                             : options.log_decay;
    const Tensor sums = gates.flip({2}).cumsum(2).flip({2});  // l_j + .. + l_(n-1)
    const Tensor first = sums.slice(2, 0, 1);                 // no row, if n = 0
    const Tensor rows =
        at::cat({sums.slice(2, 1), at::zeros_like(first)}, 2).unsqueeze(3);
    fading.rows = fading.rows.defined() ? fading.rows + rows : rows;
    fading.all = fading.all + first.sum(2, /*keepdim=*/true);
  }
  return fading;
}

/// No rows of x; undefined stays so.
Tensor none_of(const Tensor& x) { return x.defined() ? x.narrow(2, 0, 0) : x; }

/// The options of a call without order that has `keys` but no queries, or queries alone.
LinearOptions without_order(LinearOptions options) {
  options.causal = false;
  options.decay = options.log_decay = Tensor();
  return options;
}

/// Keys and values whose state is asked for.
struct Absorbing {
  Tensor k, v;
  Tensor fading;  ///< as in Fading::rows; undefined: nothing fades
  LinearOptions options;

  /// All that have a gradient and are there.
  std::vector<Tensor*> tensors() {
    std::vector<Tensor*> all;
    for (Tensor* x : {&k, &v, &fading, &options.k_norm, &options.log_scale})
      if (x->defined()) all.push_back(x);
    return all;
  }
};

/// What the rows leave in a state that was empty before: sum_j e^(fading of j) k_j v_j^T.
/// Full attention without queries does that, of keys that are faded beforehand.
LinearState absorb(const Absorbing& given) {
  LinearOptions options = without_order(given.options);
  const std::string map = options.feature_map;
  Tensor keys = given.k;
  if (given.fading.defined()) {
    const Tensor left = given.fading.exp();
    keys = ops::feature_map(keys, map) * left;
    if (options.k_norm.defined())
      options.k_norm = ops::feature_map(options.k_norm, map) * left;
    options.feature_map = "none";
  }
  options.q_norm = none_of(options.k_norm);
  if (options.lengths.defined()) {
    options.key_lengths = options.lengths;
    options.lengths = at::zeros_like(options.lengths);
  }
  return ops::linear_attention_stateful(none_of(keys), keys, given.v, {}, options)
      .state;
}

/// The same, keeping its inputs alone: the faded features, as large as all keys, are
/// computed anew in the backward pass.
LinearState absorb_anew(Absorbing given) {
  given.options = without_order(given.options);
  given.options.q_norm = Tensor();
  std::vector<Tensor> inputs;
  for (Tensor* x : given.tensors()) inputs.push_back(*x), *x = x->detach();
  const LinearState state = absorb(given);
  const auto backward = [given, precision = ops::precision()](std::vector<Tensor> d) {
    const ops::WithPrecision as_before(precision);
    Absorbing again = given;
    std::vector<Tensor> leaves;
    for (Tensor* x : again.tensors())
      leaves.push_back(*x = x->detach().requires_grad_(true));
    const at::AutoGradMode on(true);
    const LinearState same = absorb(again);
    return torch::autograd::grad({same.s, same.z}, leaves, {d[0], d[1]},
                                 /*retain_graph=*/false, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  };
  const auto results =
      ops::graph_step("linear_state", inputs, {state.s, state.z}, backward);
  return {results[0], results[1], state.m};
}

LinearState absorbed(const Absorbing& given) {
  return ops::recomputes() ? absorb_anew(given) : absorb(given);
}

// ---- the three kinds of attention

LinearResult attend_causally(const Peers& peers, const Tensor& q, const Tensor& k,
                             const Tensor& v, const LinearOptions& options) {
  const Fading fading = fading_of(k, options);
  const RankMap mine{absorbed({k, v, fading.rows, options}), fading.all, {}};
  return ops::linear_attention_stateful(q, k, v, state_before(peers, mine), options);
}

/// The delta rule in one pass. Its rows are linear in the state before them: begun with
/// the columns of I, which nothing is written to, beside empty ones for the values, one
/// pass gives [M | s] as its last state and, of each row, [q^T M_i | its result so far].
LinearResult rewrite_causally(const Peers& peers, const Tensor& q, const Tensor& k,
                              const Tensor& v, const LinearOptions& options) {
  const int64_t b = k.size(0), h = k.size(1), n = k.size(2), d = k.size(3),
                e = v.size(3);
  const auto zeros = [&](int64_t rows, int64_t cols) {
    return at::zeros({b, h, rows, cols}, v.options());
  };
  const Tensor unit = at::eye(d, v.options()).expand({b, h, d, d});
  const LinearState begin{at::cat({unit, zeros(d, e)}, 3), {}};
  const auto [rows, last] = ops::linear_attention_stateful(
      q, k, at::cat({zeros(n, d), v}, 3), begin, options);
  const Tensor matrix = last.s.narrow(3, 0, d), own = last.s.narrow(3, d, e);
  const LinearState before = state_before(peers, {{own, last.z}, {}, matrix});
  return {at::matmul(rows.narrow(3, 0, d), before.s) + rows.narrow(3, d, e),
          {at::matmul(matrix, before.s) + own, last.z}};
}

/// One state for all rows: the sum of what each rank absorbed, in units of the largest m.
LinearState state_of_all(const Peers& peers, const LinearState& own) {
  Tensor row = packed(own.s, own.z), largest = own.m;
  if (own.m.defined() && own.m.dim() == 2) {
    largest = peers.gather(own.m.contiguous()).amax(0);
    row = row * shrunk(own.m, largest).unsqueeze(2);
  }
  LinearState all = unpacked(ops::sum_over_ranks(peers, row), own.s, own.z);
  all.m = std::move(largest);
  return all;
}

LinearResult attend_fully(const Peers& peers, const Tensor& q, const Tensor& k,
                          const Tensor& v, const LinearOptions& given) {
  const LinearState all = state_of_all(peers, absorbed({k, v, {}, given}));
  LinearOptions options = without_order(given);
  options.k_norm = none_of(given.k_norm), options.log_scale = none_of(given.log_scale);
  if (given.lengths.defined()) options.key_lengths = at::zeros_like(given.lengths);
  return {ops::linear_attention_stateful(q, none_of(k), none_of(v), all, options).out,
          all};
}

}  // namespace

LinearResult linear_attention_together(const Peers& peers, const Tensor& q,
                                       const Tensor& k, const Tensor& v,
                                       const LinearOptions& options) {
  if (options.key_lengths.defined() || options.cu_seqlens.defined() ||
      q.size(2) != k.size(2))
    throw std::invalid_argument(
        "linear: expected queries and keys of the same rows, which ranks share, got "
        "key_lengths, cu_seqlens or another number of keys");
  if (!options.causal) return attend_fully(peers, q, k, v, options);
  return options.write_strength.defined() ? rewrite_causally(peers, q, k, v, options)
                                          : attend_causally(peers, q, k, v, options);
}

}  // namespace lagwise
