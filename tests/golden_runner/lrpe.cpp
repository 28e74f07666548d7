// LRPE in all its forms: encoded rows, scores, and linear attention on features that
// are encoded after the map, with the norm or denominator each case names.

#include <ATen/ATen.h>

#include <numbers>

#include "lagwise/attention/linear.h"
#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

using Side = FeatureMap::Side;

struct Lrpe {
  std::unique_ptr<Encoding> encoding;
  Layer layer = {};
  Draw draw = {};
  Placement at = {};

  Encoded of(const at::Tensor& q, const at::Tensor& k) {
    return encode_once(*encoding, batched(q), batched(k), at, draw, &layer);
  }
};

std::string lambda_of(const std::string& name) {
  if (name == "rope") return "rotation";
  if (name == "mix") return "mixed";
  if (name == "perm") return "permutation";
  if (name == "complex") return "unitary";
  return name;
}

Lrpe make_lrpe(Run& run) {
  const GoldenCase& golden = run.golden;
  const bool theta = golden.param<bool>("theta_learned");
  const bool vectors = golden.param<bool>("householder_learned");
  const auto type = golden.param<std::string>("theta_type");
  std::string text = "lrpe:lambda=" + lambda_of(golden.param<std::string>("Lambda")) +
                     ",p=" + golden.param<std::string>("P") + ",type=" + type;
  text += theta ? ",angles=learned" : ",angles=fixed";
  if (vectors) text += ",vectors=learned";
  // The authors' types b and c take the length of the sequence.
  if (type != "a") text += ",horizon=" + std::to_string(golden["q"].shape[1]);
  Lrpe one{
      encoding(text, {.heads = golden["q"].shape[0], .dim = golden["q"].shape[2]})};
  one.layer = {0, 1, one.encoding->layer(0, 1)};
  if (theta) run.fill("theta", one.layer["theta"]);
  if (vectors) run.fill("householder_v", one.layer["v"]);
  // Fixed angles are formulas; what the authors draw at random is given.
  for (const char* name : {"householder_v", "permutation"})
    if (golden.has(name)) one.draw.given[name] = run.given(name);
  return one;
}

// attn_*: features first, then positions.
struct Attended {
  at::Tensor out, state;
};

Attended attend(Run& run, Lrpe& lrpe, const std::string& text, bool causal,
                bool plain_denominator) {
  const at::Tensor q = batched(run.leaf("q")), k = batched(run.leaf("k"));
  const at::Tensor v = batched(run.leaf("value"));
  const LinearAttention attention(
      text, {.heads = q.size(1), .dim = q.size(3), .value_dim = v.size(3)});
  LinearInputs inputs;
  const Features fq = attention.features(q, Side::query, {});
  const Features fk = attention.features(k, Side::key, {});
  const Encoded encoded = lrpe.of(fq.x, fk.x);
  inputs.q.x = encoded.q;
  inputs.k.x = encoded.k;
  inputs.v = v;
  inputs.decay = encoded.decay;
  inputs.causal = causal;
  if (plain_denominator) inputs.q_norm = fq, inputs.k_norm = fk;
  const auto result = attention.attend(inputs, ops::LinearState{});
  return {result.out, result.state.s};
}

void lrpe(Run& run) {
  Lrpe one = make_lrpe(run);
  const Encoded got = one.of(run.leaf("q"), run.leaf("k"));
  run.compare("q_hat", got.q);
  run.compare("k_hat", got.k);
  const at::Tensor products = at::matmul(got.q, got.k.transpose(-1, -2));
  run.compare("scores", products);
  run.compare_gradients({{"scores", products}});

  const std::string bare = "linear:map=elu1,denominator=none";
  run.compare_if_stored("attn_full_nodenom", attend(run, one, bare, false, false).out);
  const Attended causal = attend(run, one, bare, true, false);
  run.compare_if_stored("attn_causal_nodenom", causal.out);
  run.compare_if_stored("final_state", causal.state);
  run.compare_if_stored("attn_causal_plain_denominator",
                        attend(run, one, "linear:map=elu1,eps=0", true, true).out);
  if (!run.golden.has("attn_causal_layernorm")) return;
  const std::string eps = exactly(run.golden.param<double>("layernorm_eps"));
  const at::Tensor normed =
      attend(run, one, bare + ",norm=layer_concat,norm_gain=false,norm_eps=" + eps,
             true, false)
          .out;
  run.compare("attn_causal_layernorm", normed.transpose(1, 2).reshape(
                                           run.golden["attn_causal_layernorm"].shape));
}

// TransNormerLLM: angles dealt out over all heads, and a decay by ALiBi's slopes.
void lrpe_d(Run& run) {
  const GoldenCase& golden = run.golden;
  Lrpe one{
      encoding("lrpe:lambda=unitary,p=identity,angles=fixed,spread=true,decay=alibi",
               {.heads = golden["q"].shape[0], .dim = golden["q"].shape[2]})};
  one.layer = {0, 1, one.encoding->layer(0, 1)};
  const auto act = golden.param<std::string>("act");
  const auto phi = [&](const char* name) {
    return feature_map(act)->features(batched(run.leaf(name)), Side::query, {}, {}).x;
  };
  const Encoded got = one.of(phi("q"), phi("k"));
  run.compare("q_hat", got.q);
  run.compare("k_hat", got.k);
  const Attended attended =
      attend(run, one, "linear:map=" + act + ",denominator=none", true, false);
  run.compare("out", attended.out);
  run.compare_if_stored("final_state", attended.state);
  run.compare_gradients({{"out", attended.out}});
}

// Angles can be told from what they turn up to whole turns, which are taken from
// `want`. Unit rows: y_a = cos, y_b = sin.
at::Tensor angles(Run& run, Lrpe& one, bool unitary) {
  const at::Tensor want = run.given("angles");  // [H, N, J]
  const int64_t j = want.size(2), d = one.encoding->shape().dim;
  const at::Tensor pair = at::tensor({1, 0}, run.dtype);
  const at::Tensor row = unitary ? at::ones({d}, run.dtype) : pair.repeat({j});
  const at::Tensor x = row.expand({1, want.size(0), want.size(1), d});
  const at::Tensor y = one.of(x, x).q[0];
  const at::Tensor cosine = unitary ? y.narrow(2, 0, j) : y.slice(2, 0, 2 * j, 2);
  const at::Tensor sine = unitary ? y.narrow(2, j, j) : y.slice(2, 1, 2 * j, 2);
  const at::Tensor angle = at::atan2(sine, cosine);
  const double turn = 2 * std::numbers::pi;
  return angle + ((want - angle) / turn).round() * turn;
}

void md_lrpe(Run& run) {
  const GoldenCase& golden = run.golden;
  const int64_t d = golden["q"].shape[2];
  const bool unitary = golden["q_hat"].shape[2] == 2 * d;
  const std::string lambda = unitary ? "unitary" : "rotation";
  Lrpe one{encoding("lrpe:p=identity,angles=fixed,spread=true,lambda=" + lambda,
                    {.heads = golden["q"].shape[0], .dim = d})};
  one.layer = {0, 1, one.encoding->layer(0, 1)};
  one.at.causal = false;
  one.at.grid = {golden.param<int64_t>("height"), golden.param<int64_t>("width")};
  const Encoded got = one.of(run.leaf("q"), run.leaf("k"));
  run.compare("q_hat", got.q);
  run.compare("k_hat", got.k);
  const at::Tensor products = at::matmul(got.q, got.k.transpose(-1, -2));
  run.compare("scores", products);
  run.compare_gradients({{"scores", products}});
  if (golden.has("angles")) run.compare("angles", angles(run, one, unitary));
}

const RegisterHandler lrpe_rows[] = {
    RegisterHandler({"LRPE", "LRPE", lrpe}),
    RegisterHandler({"LRPE-d", "LRPE", lrpe_d}),
    RegisterHandler({"MD-LRPE", "LRPE", md_lrpe}),
};

}  // namespace
}  // namespace lagwise::golden
