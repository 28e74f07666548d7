#include "lagwise/nn/pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

namespace lagwise::nn {

at::Tensor sequence(const at::Tensor& x, int64_t b, int64_t count) {
  return x.defined() ? x.narrow(0, b, 1).narrow(2, 0, count) : x;
}

at::Tensor with_graph(const at::Tensor& kept, const at::Tensor& fresh) {
  if (!at::GradMode::is_enabled() || !fresh.requires_grad()) return kept;
  const at::Tensor before = kept.narrow(2, 0, kept.size(2) - fresh.size(2));
  return at::cat({before.to(fresh.scalar_type()), fresh}, 2);
}

Placement placement_of(const Pass& pass, int64_t b) {
  Placement at = pass.at;
  at.query_start = pass.starts[static_cast<size_t>(b)];
  if (at.key_at.defined()) at.key_start = at.query_start;  // self attention
  at.query_at = at.key_at = at::Tensor();
  return at;
}

Encoded encode_rows(Encoding& encoding, const at::Tensor& q, const at::Tensor& k,
                    const Layer& layer, const Pass& pass) {
  if (pass.starts.empty()) return encoding.encode(q, k, pass.code, layer, pass.at);
  Encoded all;
  std::vector<at::Tensor> queries, keys;
  for (int64_t b = 0; b < q.size(0); ++b) {
    Encoded one = encoding.encode(q.narrow(0, b, 1), k.narrow(0, b, 1),
                                  pass.codes[static_cast<size_t>(b)], layer,
                                  placement_of(pass, b));
    queries.push_back(one.q), keys.push_back(one.k);
    if (b == 0) all = std::move(one);
  }
  all.q = at::cat(queries, 0), all.k = at::cat(keys, 0);
  return all;
}

}  // namespace lagwise::nn
