// FAVOR+ and its relatives, and cosFormer: features that are formed before attention.

#include <ATen/ATen.h>

#include <cmath>

#include "lagwise/attention/linear.h"
#include "tests/golden_runner/exact_call.h"
#include "tests/golden_runner/pieces.h"
#include "tests/golden_runner/spe_arrays.h"

namespace lagwise::golden {
namespace {

using Side = FeatureMap::Side;

// Features with the stored directions [m, D], scale and all.
at::Tensor features(const std::string& text, const at::Tensor& x, Side side,
                    const at::Tensor& directions) {
  const auto map = feature_map(text);
  Draw draw;
  draw.given["favor"] = directions;
  const Features f =
      map->features(x, side, map->directions(draw, 0, x.size(-1), x.options()), {});
  return f.log_scale.defined() ? f.x * f.log_scale.exp().unsqueeze(-1) : f.x;
}

// The public references take out the largest exponent, of a query's features or of
// all keys, and then add eps: ours is brought to that form to be compared.
at::Tensor stabilised(const at::Tensor& phi, const at::Tensor& x,
                      const at::Tensor& directions, at::IntArrayRef over, double eps) {
  const double d = static_cast<double>(x.size(-1));
  const at::Tensor u = at::matmul(x * std::pow(d, -0.25), directions.t());
  const double m = static_cast<double>(directions.size(0));
  return phi * (-u.amax(over, true)).exp() + eps / std::sqrt(m);
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  bool causal, double eps) {
  ops::LinearOptions options;
  options.causal = causal;
  options.eps = eps;
  return ops::linear_attention(q, k, v, options);
}

// The attention users get: a running maximum over keys, in place of that of all.
at::Tensor causal_favor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& directions) {
  const LinearAttention attention(
      "linear:map=favor:features=" + std::to_string(directions.size(0)),
      {.heads = q.size(1), .dim = q.size(3), .value_dim = v.size(3)});
  LinearInputs inputs;
  inputs.q = attention.features(q, Side::query, {}, directions);
  inputs.k = attention.features(k, Side::key, {}, directions);
  inputs.v = v;
  return attention.attend(inputs);
}

void compare_causal(Run& run, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const at::Tensor& directions) {
  if (run.dtype != at::kDouble) return;
  const at::Tensor ours = causal_favor(q, k, v, directions);
  run.compare_differs("out_causal", ours);
  const int64_t last = k.size(2) - 1;
  at::Tensor louder = k.clone();
  louder.select(2, last).mul_(3);
  const at::Tensor after = causal_favor(q, louder, v, directions);
  run.expect(at::equal(ours.narrow(2, 0, last), after.narrow(2, 0, last)),
             "a later key must not change earlier outputs");
}

void favor_plus(Run& run) {
  const at::Tensor q = run.leaf("q"), k = run.leaf("k"), v = run.leaf("value");
  const at::Tensor w = run.given("projection");
  const double eps = run.golden.param<double>("eps");
  const std::string text = "favor:features=" + std::to_string(w.size(0));
  const at::Tensor phi_q = features(text, q, Side::query, w);
  const at::Tensor phi_k = features(text, k, Side::key, w);
  run.compare("phi_q_nostab", phi_q);
  run.compare("phi_k_nostab", phi_k);
  const at::Tensor out = attend(phi_q, phi_k, v, false, 0);
  run.compare("out_nostab", out);
  run.compare_gradients({{"out_nostab", out}});

  const at::Tensor stable_q = stabilised(phi_q, q, w, {-1}, eps);
  const at::Tensor stable_k = stabilised(phi_k, k, w, {-2, -1}, eps);
  run.compare("phi_q", stable_q);
  run.compare("phi_k", stable_k);
  run.compare("out_full", attend(stable_q, stable_k, v, false, 0));
  compare_causal(run, q.detach(), k.detach(), v.detach(), w);
  Placement everywhere;
  everywhere.causal = false;
  const Encoded plain{.q = q, .k = k, .scale = 1 / std::sqrt(double(q.size(3)))};
  run.compare_if_stored("exact_softmax_out", attend_exactly(plain, v, everywhere));
}

void favor_relu(Run& run) {
  const at::Tensor q = run.leaf("q"), w = run.given("projection");
  const std::string eps = exactly(run.golden.param<double>("eps"));
  run.compare("phi_q", features("favor_relu:offset=" + eps +
                                    ",features=" + std::to_string(w.size(0)),
                                q, Side::query, w));
  // Without a projection it is the pointwise map of the scaled rows.
  if (!run.golden.has("phi_q_noprojection")) return;
  const at::Tensor z = q * std::pow(double(q.size(-1)), -0.25);
  run.compare("phi_q_noprojection",
              feature_map("relu:offset=" + eps)->features(z, Side::query, {}, {}).x);
}

void favor_two_sided(Run& run) {
  const at::Tensor w = run.given("projection");
  run.compare("phi",
              features("favor_two_sided:features=" + std::to_string(2 * w.size(0)),
                       run.leaf("q"), Side::query, w));
}

// spe/favor: arrays (B, L, H, R), directions [R, F/2].
void favor_after_spe(Run& run) {
  run.excuse("omega_from_blocks", "directions come from our own generator");
  const at::Tensor w = run.given("omega").t();
  const at::Tensor q = to_heads(run.leaf("qhat")), k = to_heads(run.leaf("khat"));
  const at::Tensor v = to_heads(run.leaf("values"));
  const std::string text = "favor_two_sided:features=" + std::to_string(2 * w.size(0));
  const at::Tensor phi_q = features(text, q, Side::query, w);
  const at::Tensor phi_k = features(text, k, Side::key, w);
  run.compare("phi_q", from_heads(phi_q, run.golden["phi_q"].shape));
  for (const std::string mask : {"full", "causal"}) {
    const std::string name = "favor_" + mask;
    if (!run.golden.has("out_" + name)) continue;
    const at::Tensor out = from_heads(attend(phi_q, phi_k, v, mask == "causal", 1e-6),
                                      run.golden["out_" + name].shape);
    run.compare("out_" + name, out);
    run.compare_gradients((out * run.given("grad_out")).sum(), "de_" + name + "_");
  }
  if (!run.golden.has("out_jaxsoftmax_full")) return;
  // Google's form takes out the largest key of the whole batch.
  const std::string one_sided = "favor:features=" + std::to_string(w.size(0));
  const at::Tensor jax_q =
      stabilised(features(one_sided, q, Side::query, w), q, w, {-1}, 1e-6);
  const at::Tensor jax_k =
      stabilised(features(one_sided, k, Side::key, w), k, w, {0, 1, 2, 3}, 1e-6);
  run.compare("out_jaxsoftmax_full",
              from_heads(attend(jax_q, jax_k, v, false, 0),
                         run.golden["out_jaxsoftmax_full"].shape));
}

// (L, B, C) through a projection, as [B, H, L, D].
at::Tensor projected(Run& run, const std::string& name, const std::string& letter,
                     int64_t heads) {
  const at::Tensor x =
      at::linear(run.leaf(name), run.given("W" + letter), run.given("b" + letter));
  return x.view({x.size(0), x.size(1), heads, -1}).permute({1, 2, 0, 3});
}

void cosformer(Run& run) {
  const int64_t heads = run.golden.param<int64_t>("heads");
  const at::Tensor q = projected(run, "query", "q", heads);
  const at::Tensor k = projected(run, "key", "k", heads);
  const at::Tensor v = projected(run, "value", "v", heads);
  const LinearAttention attention(
      "linear:map=cosformer:horizon=" + std::to_string(run.golden.param<int64_t>("M")),
      {.heads = heads, .dim = q.size(3), .value_dim = v.size(3)});
  LinearInputs inputs;
  inputs.causal = run.golden.param<bool>("causal");
  inputs.q = attention.features(q, Side::query, {});
  inputs.k = attention.features(k, Side::key, {});
  inputs.v = v;
  const at::Tensor out =
      attention.attend(inputs).permute({2, 0, 1, 3}).reshape(run.golden["out"].shape);
  run.compare("out", out);
  run.compare_gradients({{"out", out}});
}

const RegisterHandler random_features_rows[] = {
    RegisterHandler({"FAVOR+", "FAVOR", favor_plus}),
    RegisterHandler({"FAVOR generalized", "FAVOR", favor_relu}),
    RegisterHandler({"FAVOR+ (both signs)", "FAVOR", favor_two_sided}),
    RegisterHandler({"FAVOR after SPE", "FAVOR", favor_after_spe}),
    RegisterHandler({"cosFormer", "cosFormer", cosformer}),
};

}  // namespace
}  // namespace lagwise::golden
