// Stochastic positional encoding with the reference's own noise: codes, encoded
// queries and keys, their gradients, and attention on them.
//
// Everything is read through the public interface. A code is what a unit query
// becomes. Exact moments over draws come from noise whose rows are orthogonal and of
// norm sqrt(R): with it <q_m, k_n> is its own mean (Liutkus et al., arXiv:2105.08399).

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "lagwise/ops/linear_attention.h"
#include "tests/golden_runner/pieces.h"
#include "tests/golden_runner/spe_arrays.h"

namespace lagwise::golden {
namespace {

constexpr const char* kGates[] = {"_u", "_g"};  // ungated, gated

// "out_elu_causal_g"
struct AttentionCase {
  std::string name, gate;
  ops::LinearOptions options;
};

std::vector<AttentionCase> attention_cases(const GoldenCase& golden) {
  std::vector<AttentionCase> cases;
  for (const std::string map : {"elu", "relu"}) {
    for (const std::string mask : {"causal", "full"}) {
      for (const std::string gate : kGates) {
        AttentionCase one{map + "_" + mask + gate, gate, {}};
        one.options.causal = mask == "causal";
        one.options.feature_map = map == "elu" ? "elu1" : "relu:offset=0.001";
        one.options.eps = map == "elu" ? 1e-6 : 0;
        if (golden.has("out_" + one.name)) cases.push_back(one);
      }
    }
  }
  return cases;
}

// Attention alone, on the stored code: it needs no encoding.
void attend_to_stored(Run& run) {
  for (const AttentionCase& one : attention_cases(run.golden)) {
    const at::Tensor out = ops::linear_attention(
        to_heads(run.given("qhat" + one.gate)), to_heads(run.given("khat" + one.gate)),
        to_heads(run.given("values")), one.options);
    run.compare("out_" + one.name,
                from_heads(out, run.golden["out_" + one.name].shape));
  }
}

using MakeSpe = std::function<Spe(bool gated)>;

// Row n of the code is the encoding of a unit query there: q = e_d for d in the batch.
Encoded unit_code(Spe& spe, const std::vector<int64_t>& size, at::ScalarType dtype) {
  const HeadShape& shape = spe.encoding->shape();
  const at::Tensor units =
      at::eye(shape.dim, dtype)
          .view({shape.dim, 1, 1, shape.dim})
          .expand({shape.dim, shape.heads, cells(size), shape.dim});
  return spe.encode(units, units, size);
}

// [D, H, N, R] as (1, *size, H, D, R)
at::Tensor as_code(const at::Tensor& encoded, const std::vector<int64_t>& stored) {
  return encoded.permute({2, 1, 0, 3}).reshape(stored);
}

void compare_code(Run& run, Spe& spe) {
  const std::vector<int64_t> stored = run.golden["qbar"].shape;
  const std::vector<int64_t> size(stored.begin() + 1, stored.end() - 3);
  const Encoded code = unit_code(spe, size, run.dtype);
  run.compare("qbar", as_code(code.q, stored));
  run.compare("kbar", as_code(code.k, stored));
}

void compare_encoded(Run& run, Spe& spe, const std::string& gate) {
  const at::Tensor queries = run.leaf("queries"), keys = run.leaf("keys");
  const Encoded got = spe.encode(to_heads(queries), to_heads(keys), grid_of(queries));
  const at::Tensor q = from_heads(got.q, run.golden["qhat" + gate].shape);
  const at::Tensor k = from_heads(got.k, run.golden["khat" + gate].shape);
  run.compare("qhat" + gate, q);
  run.compare("khat" + gate, k);
  run.compare_gradients(
      (q * run.given("grad_qhat")).sum() + (k * run.given("grad_khat")).sum(), "d_",
      gate);
  for (const AttentionCase& one : attention_cases(run.golden)) {
    if (one.gate != gate) continue;
    const at::Tensor out =
        ops::linear_attention(got.q, got.k, to_heads(run.leaf("values")), one.options);
    const at::Tensor rows = from_heads(out, run.golden["out_" + one.name].shape);
    run.compare("out_" + one.name, rows);
    run.compare_gradients((rows * run.given("grad_out")).sum(), "de_" + one.name + "_");
  }
}

// The mean and variance over draws of <q_m, k_n>, from orthogonal noise of R' rows:
//   mean = sqrt(R / R') <q, k>,  var = (s_q^2 s_k^2 + c^2) / D,  c = mean sqrt(D / R).
void compare_moments(Run& run, Spe& spe, const std::string& gate) {
  const double d = static_cast<double>(spe.encoding->shape().dim);
  const double r = static_cast<double>(run.golden["qhat" + gate].shape.back());
  const at::Tensor queries = run.given("queries"), keys = run.given("keys");
  const Encoded got = spe.encode(to_heads(queries), to_heads(keys), grid_of(queries));
  const double unit = std::sqrt(d / static_cast<double>(got.q.size(-1)));
  const at::Tensor c = at::matmul(got.q, got.k.transpose(-1, -2)) * unit;
  const at::Tensor q2 = got.q.square().sum(-1, true) * unit;
  const at::Tensor k2 = got.k.square().sum(-1, true) * unit;
  run.compare_if_stored("logit_mean" + gate, c * std::sqrt(r / d));
  run.compare_if_stored("logit_var" + gate,
                        (at::matmul(q2, k2.transpose(-1, -2)) + c.square()) / d);
}

// P_d(m - n): the mean of the product of unit queries and keys.
void compare_template(Run& run, Spe& spe) {
  if (!run.golden.has("template")) return;
  const at::Tensor queries = run.given("queries");
  const Encoded got = unit_code(spe, grid_of(queries), run.dtype);  // [D, H, N, R']
  const double d = static_cast<double>(spe.encoding->shape().dim);
  const double unit = std::sqrt(d / static_cast<double>(got.q.size(-1)));
  const at::Tensor mean =
      (at::matmul(got.q, got.k.transpose(-1, -2)) * unit).transpose(0, 1);
  run.compare("template", mean);
  if (run.golden.has("posattn_ref"))  // the reference leaves out 1 / (2K)
    run.compare("posattn_ref", mean.unsqueeze(0) * 2.0 *
                                   static_cast<double>(run.golden.param<int64_t>("K")));
}

void excuse_initial_values(Run& run) {
  for (const GoldenTensor& tensor : run.golden.tensors)
    if (tensor.name.starts_with("init_"))
      run.excuse(tensor.name, "initial parameters come from our own generator");
}

void run_spe(Run& run, Spe (*make)(Run&, bool gated, bool orthogonal)) {
  excuse_initial_values(run);
  if (run.golden.has("positions"))
    for (const char* name : {"qbar_f32", "kbar_f32"})
      run.excuse(name, "the reference's own phases are off at far positions in f32");
  attend_to_stored(run);
  Spe plain = make(run, false, false);
  compare_code(run, plain);
  for (const bool gated : {false, true}) {
    if (!run.golden.has(gated ? "qhat_g" : "qhat_u")) continue;
    run.forget_leaves();
    Spe spe = make(run, gated, false);
    compare_encoded(run, spe, kGates[gated]);
    Spe exact = make(run, gated, true);
    compare_moments(run, exact, kGates[gated]);
    if (!gated) compare_template(run, exact);
  }
}

void sine(Run& run) { run_spe(run, make_sine_spe); }
void conv(Run& run) { run_spe(run, make_conv_spe); }

const RegisterHandler spe_rows[] = {
    RegisterHandler({"SineSPE", "SPE", sine}),
    RegisterHandler({"ConvSPE", "SPE", conv}),
};

}  // namespace
}  // namespace lagwise::golden
