// Encodings by vectors per lag, through exact attention: Shaw, Huang and its
// generalisation, Transformer-XL.

#include <ATen/ATen.h>

#include "tests/golden_runner/exact_call.h"
#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

struct Exact {
  std::unique_ptr<Encoding> encoding;
  Layer layer = {};
  Placement at = {};
};

// Makes the encoding for the shapes of a case, with its stored parameters.
Exact exact(Run& run, const std::string& text, int64_t model_dim,
            std::initializer_list<const char*> parameters) {
  const auto& q = run.golden["q"].shape;
  const auto& v = run.golden["value"].shape;
  Exact one{encoding(text, {.heads = q.front(),
                            .dim = q.back(),
                            .model_dim = model_dim,
                            .value_dim = v.back()})};
  one.layer = {0, 1, one.encoding->layer(0, 1)};
  for (const char* name : parameters) run.fill(name, one.layer[name]);
  return one;
}

Encoded encoded(Run& run, Exact& one) {
  return encode_once(*one.encoding, batched(run.leaf("q")), batched(run.leaf("k")),
                     one.at, {}, &one.layer);
}

void finish(Run& run, const Exact& one, const Encoded& got) {
  const at::Tensor out = attend_exactly(got, batched(run.leaf("value")), one.at);
  run.compare("out", out);
  run.compare_gradients({{"out", out}});
}

void shaw(Run& run) {
  const GoldenCase& golden = run.golden;
  Exact one = exact(run, "shaw:clip=" + std::to_string(golden.param<int64_t>("clip")),
                    0, {"rel_k", "rel_v"});
  one.at.causal = golden.param<bool>("causal");
  one.at.query_start = golden.param<int64_t>("query_offset");
  const Encoded got = encoded(run, one);
  at::Tensor s = scores(got);
  run.compare_if_stored("scores_before_mask", s);
  if (one.at.causal) {
    const at::Tensor seen = at::ones_like(s).tril(one.at.query_start);
    s = s.masked_fill(seen.eq(0), -HUGE_VAL);
  }
  run.compare_if_stored("probs", s.softmax(-1));
  finish(run, one, got);
}

void huang(Run& run) {
  const auto most = std::to_string(run.golden["E"].shape[0]);
  Exact one = exact(run, "huang:form=causal,max=" + most, 0, {"E"});
  const Encoded got = encoded(run, one);
  run.compare_if_stored("S", visible_only(lag_key_scores(got)));
  finish(run, one, got);
}

void any_attention(Run& run) {
  const int64_t most = (run.golden["E"].shape[1] + 1) / 2;
  Exact one = exact(run, "huang:form=any,max=" + std::to_string(most), 0, {"E"});
  one.at.causal = run.golden.param<bool>("causal");
  one.at.query_start = run.golden.param<int64_t>("query_offset");
  const Encoded got = encoded(run, one);
  run.compare_if_stored("S", lag_key_scores(got));
  finish(run, one, got);
}

// With one head as wide as the model and W_R the identity, lag_keys are R itself.
void compare_sinusoid(Run& run) {
  const int64_t rows = run.golden["R"].shape[0], width = run.golden["R"].shape[1];
  const auto one =
      encoding("transformer_xl", {.heads = 1, .dim = width, .model_dim = width});
  Layer layer{0, 1, one->layer(0, 1)};
  for (auto& [name, value] : layer.own) {
    value = value.detach().to(run.dtype);
    if (name == "W_R") value = at::eye(width, run.dtype).unsqueeze(0);
  }
  const at::Tensor q = at::zeros({1, 1, 1, width}, run.dtype);
  const at::Tensor k = at::zeros({1, 1, rows, width}, run.dtype);
  Placement at;
  at.query_start = rows - 1;
  const Encoded got = encode_once(*one, q, k, at, {}, &layer);
  run.compare("R", got.lag_keys[0].flip(0));  // rows run from the farthest to lag 0
}

void transformer_xl(Run& run) {
  const int64_t model_dim = run.golden.param<int64_t>("d_model");
  Exact one = exact(run, "transformer_xl", model_dim, {"u", "v_bias", "W_R"});
  one.at.query_start = run.golden.param<int64_t>("memory");
  const Encoded got = encoded(run, one);
  // (q + v) . W_R R: the bias by lag holds (v - u) . W_R R, with the scale in it.
  const int64_t n = got.q.size(2), m = got.k.size(2);
  const at::Tensor by_position =
      lag_key_scores(got) + by_pair(got.lag_bias, n, m) / got.scale;
  run.compare_if_stored("bd", visible_only(by_position, one.at.query_start));
  if (run.golden.has("R")) compare_sinusoid(run);
  finish(run, one, got);
}

const RegisterHandler exact_rows[] = {
    RegisterHandler({"Shaw 2018", "exact", shaw}),
    RegisterHandler({"Huang 2018 skew", "exact", huang}),
    RegisterHandler(
        {"generalised relative embedding (any attention)", "exact", any_attention}),
    RegisterHandler({"Transformer-XL", "exact", transformer_xl}),
};

}  // namespace
}  // namespace lagwise::golden
