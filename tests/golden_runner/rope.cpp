// RoPE and xPos: scores of rotated queries and keys, with no scale.

#include <ATen/ATen.h>

#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

struct Rotation {
  std::unique_ptr<Encoding> encoding;
  Placement at;

  Encoded of(const at::Tensor& q, const at::Tensor& k) {
    return encode_once(*encoding, batched(q), batched(k), at);
  }
};

at::Tensor plain_scores(const Encoded& encoded) {
  return at::matmul(encoded.q, encoded.k.transpose(-1, -2));
}

// "scaling=yarn,factor=4,.." of the parameters a case states.
std::string scaling_options(const GoldenCase& golden) {
  const auto kind = golden.param<std::string>("scaling", "none");
  if (kind == "none") return "";
  const auto& given = golden.params.at("scaling_params");
  // "original" is what dynamic NTK calls the trained length.
  const bool dynamic = kind == "dynamic_ntk";
  const auto number = [&](const char* mine, const char* theirs) {
    return given.contains(theirs)
               ? std::string(",") + mine + "=" + exactly(given.at(theirs).get<double>())
               : "";
  };
  return ",scaling=" + kind + number("factor", "factor") +
         number("original", dynamic ? "max_pos" : "orig") + number("low", "low") +
         number("high", "high") + number("beta_fast", "beta_fast") +
         number("beta_slow", "beta_slow") +
         (dynamic ? number("horizon", "seq_len") : "");
}

Rotation rotation(const Run& run, const std::string& layout) {
  const GoldenCase& golden = run.golden;
  const int64_t d = golden["q"].shape.back();
  std::string text = "rope:layout=" + layout +
                     ",base=" + exactly(golden.param<double>("base", 10000.0)) +
                     scaling_options(golden);
  const int64_t rotated = golden.param<int64_t>("rotary_dim", d);
  if (rotated < d)  // half a coordinate more, so that rounding loses none
    text += ",partial=" + exactly((double(rotated) + 0.5) / double(d));
  Rotation one{encoding(text, {.heads = golden["q"].shape.front(), .dim = d}), {}};
  one.at.query_at = one.at.key_at = golden.load("positions").to(at::kLong);
  return one;
}

// What becomes of a row of ones and zeros: y_a = cos, y_b = sin of each plane (a, b).
void compare_table(Run& run, Rotation& rotation, const std::string& layout) {
  const int64_t planes = run.golden["cos"].shape.back(), n = run.golden["cos"].shape[0];
  const int64_t heads = rotation.encoding->shape().heads;
  const at::Tensor pair = at::tensor({1, 0}, run.dtype);
  const at::Tensor row =
      layout == "half" ? pair.repeat_interleave(planes) : pair.repeat({planes});
  const int64_t d = rotation.encoding->shape().dim;
  const at::Tensor rest = at::zeros({d - 2 * planes}, run.dtype);
  const at::Tensor x = at::cat({row, rest}).expand({1, heads, n, d});
  const at::Tensor y = rotation.of(x, x).q[0][0];
  const bool half = layout == "half";
  run.compare("cos", half ? y.narrow(1, 0, planes) : y.slice(1, 0, 2 * planes, 2));
  run.compare("sin", half ? y.narrow(1, planes, planes) : y.slice(1, 1, 2 * planes, 2));
}

// half(x[idx]) == interleaved(x)[idx]: how weights of one layout serve the other.
void compare_layouts(Run& run) {
  const int64_t d = run.golden["q"].shape.back();
  const at::Tensor idx =
      at::arange(d, at::kLong).view({-1, 2}).t().reshape(-1);  // evens, then odds
  run.compare("idx", idx);
  const at::Tensor q = run.leaf("q"), permuted = q.index_select(-1, idx);
  run.compare("half_of_permuted", rotation(run, "half").of(permuted, permuted).q);
  run.compare("half_of_permuted",
              rotation(run, "interleaved").of(q, q).q.index_select(-1, idx));
}

void rope(Run& run) {
  if (run.golden.has("half_of_permuted")) return compare_layouts(run);
  const auto layout = run.golden.param<std::string>("convention");
  Rotation turn = rotation(run, layout);
  const at::Tensor q = run.leaf("q");
  const at::Tensor k = run.golden.has("k") ? run.leaf("k") : q;
  const Encoded got = turn.of(q, k);
  run.compare("q_rot", got.q);
  run.compare_if_stored("k_rot", got.k);
  if (run.golden.has("cos")) compare_table(run, turn, layout);
  if (!run.golden.has("scores")) return;
  const at::Tensor products = plain_scores(got);
  run.compare("scores", products);
  run.compare_gradients({{"scores", products}});
}

// sum_d q_id k_jd g_d^(i-j) for j <= i, of the form that hands over a decay.
at::Tensor decayed_scores(const Encoded& x) {
  const at::Tensor rows = at::arange(x.q.size(2), x.q.options());
  const at::Tensor lag = (rows.unsqueeze(1) - rows).clamp_min(0);
  const at::Tensor factor =
      (x.decay.unsqueeze(1).unsqueeze(1) * lag.unsqueeze(-1)).exp();  // [H, N, N, D]
  return (x.q.unsqueeze(3) * x.k.unsqueeze(2) * factor).sum(-1);
}

void xpos(Run& run) {
  for (const char* name : {"zeta", "q_rot", "k_rot"})
    run.excuse(name, "the reference's centre moves with the length; ours is fixed");
  const GoldenCase& golden = run.golden;
  const at::Tensor q = batched(run.leaf("q")), k = batched(run.leaf("k"));
  Placement at;
  at.query_start = at.key_start = golden.param<int64_t>("offset");
  const auto encoded = [&](const std::string& form) {
    const std::string text =
        "rope:layout=" + golden.param<std::string>("convention") + ",xpos=" + form +
        ",xpos_base=" + exactly(golden.param<double>("scale_base"));
    const auto one = encoding(text, {.heads = q.size(1), .dim = q.size(3)});
    return encode_once(*one, q, k, at);
  };
  // Both forms: scaled queries and keys, and a decay per channel for the past.
  const at::Tensor products = plain_scores(encoded("scores"));
  run.compare("scores", products);
  const at::Tensor past = decayed_scores(encoded("true"));
  run.compare("scores", past.tril() + products.triu(1));
  run.compare_gradients({{"scores", products}});
}

const RegisterHandler rope_rows[] = {
    RegisterHandler({"RoPE", "RoPE", rope}),
    RegisterHandler({"xPos", "RoPE", xpos}),
};

}  // namespace
}  // namespace lagwise::golden
