// Biases of the score that depend on the lag: ALiBi, T5, KERPLE.

#include <ATen/ATen.h>

#include "tests/golden_runner/pieces.h"

namespace lagwise::golden {
namespace {

Placement placed(int64_t query_start, bool causal) {
  Placement at;
  at.query_start = query_start;
  at.causal = causal;
  return at;
}

// The bias of each pair, [H, N, M].
at::Tensor bias(Encoding& encoding, const Layer& layer, const Placement& at,
                int64_t queries, int64_t keys, at::ScalarType dtype) {
  const HeadShape& shape = encoding.shape();
  const at::Tensor q = at::zeros({1, shape.heads, queries, shape.dim}, dtype);
  const at::Tensor k = at::zeros({1, shape.heads, keys, shape.dim}, dtype);
  return by_pair(encode_once(encoding, q, k, at, {}, &layer).lag_bias, queries, keys);
}

void alibi(Run& run) {
  const int64_t heads = run.golden["slopes"].shape[0];
  const auto one = encoding("alibi", {.heads = heads, .dim = 4});
  const auto pairs = [&](const Placement& at, int64_t n, int64_t m) {
    return bias(*one, {}, at, n, m, run.dtype);
  };
  // One step back costs one slope; as a decay it is the log of the factor.
  run.compare("slopes", -pairs(placed(1, true), 1, 1).flatten());
  const at::Tensor x = at::zeros({1, heads, 1, 4}, run.dtype);
  run.compare("slopes", -encode_once(*one, x, x, {}).decay);
  if (run.golden.has("bias_symmetric")) {
    const int64_t n = run.golden["bias_symmetric"].shape.back();
    run.compare("bias_symmetric", pairs(placed(0, false), n, n));
  }
  if (run.golden.has("bias_causal_lower")) {
    const int64_t n = run.golden["bias_causal_lower"].shape.back();
    run.compare("bias_causal_lower", pairs({}, n, n).tril());
  }
  if (run.golden.has("bias_cross_last_aligned")) {
    const auto& shape = run.golden["bias_cross_last_aligned"].shape;
    run.compare("bias_cross_last_aligned",
                pairs(placed(shape[2] - shape[1], false), shape[1], shape[2]));
  }
}

std::unique_ptr<Encoding> t5_encoding(const GoldenCase& golden, int64_t heads) {
  return encoding(
      "t5:buckets=" + std::to_string(golden.param<int64_t>("num_buckets")) +
          ",max_distance=" + std::to_string(golden.param<int64_t>("max_distance")),
      {.heads = heads, .dim = 4});
}

// A table whose row b holds the number b tells the bucket of each lag.
void t5_buckets(Run& run, const Placement& direction) {
  const auto one = t5_encoding(run.golden, 1);
  const at::Tensor weight = parameter(one->shared(), "weight");
  weight.copy_(at::arange(weight.size(0), weight.options()).unsqueeze(1));
  const at::Tensor relative = run.given("relative");  // key minus query
  const int64_t first = relative.min().item<int64_t>();
  const int64_t keys = relative.max().item<int64_t>() - first + 1;
  Placement at = direction;  // keys 0, 1, ..; one query, to which they stand `relative`
  at.query_start = std::max<int64_t>(0, -first);
  at.key_start = std::max<int64_t>(0, first);
  const at::Tensor all = bias(*one, {}, at, 1, keys, run.dtype).flatten();
  run.compare("bucket", all.index_select(0, relative - first));
}

void t5(Run& run) {
  Placement at;
  at.causal = !run.golden.param<bool>("bidirectional");
  if (run.golden.has("bucket")) {
    at::NoGradGuard no_grad;
    return t5_buckets(run, at);
  }
  const auto& shape = run.golden["bias"].shape;
  const auto one = t5_encoding(run.golden, shape[0]);
  run.fill("weight", parameter(one->shared(), "weight"));
  at.query_start = run.golden.param<int64_t>("query_offset");
  const at::Tensor got = bias(*one, {}, at, shape[1], shape[2], run.dtype);
  run.compare("bias", got);
  run.compare_gradients({{"bias", got}});
}

void kerple(Run& run) {
  const auto& shape = run.golden["bias"].shape;
  const bool logarithm = run.golden.formula.find("log") != std::string::npos;
  const auto one = encoding(logarithm ? "kerple:kind=log" : "kerple:kind=power",
                            {.heads = shape[0], .dim = 4});
  const Layer layer{0, 1, one->layer(0, 1)};
  for (const char* name : {"r1", "r2"}) run.fill(name, layer[name]);
  const at::Tensor got =
      bias(*one, layer, placed(0, false), shape[1], shape[2], run.dtype);
  run.compare("bias", got);
  run.compare_gradients({{"bias", got}});
}

const RegisterHandler lag_bias_rows[] = {
    RegisterHandler({"ALiBi", "lag bias", alibi}),
    RegisterHandler({"T5 bias", "lag bias", t5}),
    RegisterHandler({"KERPLE", "lag bias", kerple}),
};

}  // namespace
}  // namespace lagwise::golden
