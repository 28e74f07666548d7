#include "bench/torch_gated.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <vector>

namespace lagwise::bench {
namespace {

using at::Tensor;

constexpr int64_t kRowsOfChunk = 64;

/// The log of the factor before each row, [B, H, N].
Tensor row_logs(const Tensor& v, const ops::LinearOptions& options) {
  Tensor logs = options.log_decay.defined()
                    ? options.log_decay
                    : at::zeros({v.size(0), v.size(1), v.size(2)}, v.options());
  return options.decay.defined() ? logs + options.decay.unsqueeze(-1) : logs;
}

/// [B, H, N, width] -> [B, H, chunks, 64, width]; [B, H, N] -> [B, H, chunks, 64, 1].
Tensor in_chunks(const Tensor& x) {
  const Tensor rows = x.dim() == 3 ? x.unsqueeze(-1) : x;
  return rows.reshape({x.size(0), x.size(1), -1, kRowsOfChunk, rows.size(-1)});
}

/// What each chunk adds to a state S before it: u = write - erase S, or write alone.
struct Written {
  Tensor write, erase;
};

Written written_by(const Tensor& k, const Tensor& v, const Tensor& since,
                   const Tensor& within, const ops::LinearOptions& options) {
  if (!options.write_strength.defined()) return {v, {}};
  const Tensor b = in_chunks(options.write_strength);
  const Tensor pairs = (b * within * at::matmul(k, k.transpose(-1, -2))).tril(-1);
  const Tensor system = pairs + at::eye(kRowsOfChunk, k.options());
  const auto solve = [&](const Tensor& x) {
    return at::linalg_solve_triangular(system, x, /*upper=*/false, /*left=*/true,
                                       /*unitriangular=*/true);
  };
  return {solve(b * v), solve(b * since * k)};
}

}  // namespace

Tensor torch_chunked(const Tensor& q, const Tensor& k, const Tensor& v,
                     const ops::LinearOptions& options) {
  const Tensor sums = in_chunks(row_logs(v, options)).cumsum(-2);  // [.., 64, 1]
  const Tensor last = sums.narrow(-2, kRowsOfChunk - 1, 1);
  // The exponent of a hidden pair could overflow: it is set to 0 first.
  const Tensor within = (sums - sums.transpose(-1, -2)).tril().exp();
  const Tensor since = sums.exp(), until = (last - sums).exp(), whole = last.exp();
  const Tensor cq = in_chunks(q), ck = in_chunks(k), cv = in_chunks(v);
  const Tensor scores = (within * at::matmul(cq, ck.transpose(-1, -2))).tril();
  const Written all = written_by(ck, cv, since, within, options);
  const auto faded_q = (since * cq).unbind(2);
  const auto faded_k = (until * ck).transpose(-1, -2).unbind(2);
  const auto write = all.write.unbind(2), chunk_scores = scores.unbind(2);
  const auto fades = whole.unbind(2);
  std::vector<Tensor> erase, out;
  if (all.erase.defined()) erase = all.erase.unbind(2);
  Tensor s = at::zeros({q.size(0), q.size(1), q.size(3), v.size(3)}, v.options());
  for (size_t c = 0; c < write.size(); ++c) {
    const Tensor u = erase.empty() ? write[c] : write[c] - at::matmul(erase[c], s);
    out.push_back(at::matmul(faded_q[c], s) + at::matmul(chunk_scores[c], u));
    s = fades[c] * s + at::matmul(faded_k[c], u);
  }
  return at::stack(out, 2).reshape(v.sizes());
}

Tensor torch_loop(const Tensor& q, const Tensor& k, const Tensor& v,
                  const ops::LinearOptions& options) {
  const auto factors = row_logs(v, options).exp().unbind(2);
  const auto queries = q.unbind(2), keys = k.unbind(2), values = v.unbind(2);
  std::vector<Tensor> strengths, out;
  if (options.write_strength.defined()) strengths = options.write_strength.unbind(2);
  Tensor s = at::zeros({q.size(0), q.size(1), q.size(3), v.size(3)}, v.options());
  for (size_t t = 0; t < queries.size(); ++t) {
    s = factors[t].unsqueeze(-1).unsqueeze(-1) * s;
    Tensor u = values[t];
    if (!strengths.empty())
      u = strengths[t].unsqueeze(-1) *
          (u - at::matmul(keys[t].unsqueeze(-2), s).squeeze(-2));
    s = s + keys[t].unsqueeze(-1) * u.unsqueeze(-2);
    out.push_back(at::matmul(queries[t].unsqueeze(-2), s).squeeze(-2));
  }
  return at::stack(out, 2);
}

Tensor torch_gated_step(const Tensor& q, const Tensor& k, const Tensor& v,
                        const ops::LinearState& state,
                        const ops::LinearOptions& options) {
  const Tensor& s = state.s;
  if (options.log_decay.defined())
    s.mul_(options.log_decay.exp().unsqueeze(-1).unsqueeze(-1));
  Tensor u = v;
  if (options.write_strength.defined())
    u = options.write_strength.unsqueeze(-1) *
        (v - at::matmul(k.unsqueeze(-2), s).squeeze(-2));
  s.add_(k.unsqueeze(-1) * u.unsqueeze(-2));
  return at::matmul(q.unsqueeze(-2), s).squeeze(-2);
}

}  // namespace lagwise::bench
