#include "lagwise/ops/exact/exact_call.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "lagwise/ops/torch/expect.h"
#include "lagwise/ops/torch/sequences.h"

namespace lagwise::ops {
namespace {

constexpr const char* kOp = "exact_attention";

void check_sizes(ExactCall& call) {
  TORCH_CHECK(call.q.dim() == 4, kOp, ": expected q [B, H, N, D], got ",
              call.q.sizes());
  const auto type = call.q.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, kOp,
              ": expected floating-point tensors, Float or Double, got ", type);
  call.b = call.q.size(0), call.h = call.q.size(1), call.n = call.q.size(2);
  call.d = call.q.size(3);
  expect_tensor(kOp, "k", "[B, H, M, D]", call.k, {call.b, call.h, -1, call.d}, call.q);
  call.m = call.k.size(2);
  expect_tensor(kOp, "v", "[B, H, M, E]", call.v, {call.b, call.h, call.m, -1}, call.q);
  call.e = call.v.size(3);
}

/// A table [1|H, N+M-1, width], dense. width -1: the bias, which comes without that
/// axis.
at::Tensor table(const ExactCall& call, const char* name, const char* shape,
                 const at::Tensor& x, int64_t width) {
  if (!x.defined()) return x;
  const int64_t lags = std::max<int64_t>(0, call.n + call.m - 1);
  const int64_t heads = x.dim() > 0 && x.size(0) == 1 ? 1 : call.h;
  if (width < 0) {
    expect_tensor(kOp, name, shape, x, {heads, lags}, call.q);
    return x.unsqueeze(-1).contiguous();
  }
  expect_tensor(kOp, name, shape, x, {heads, lags, width}, call.q);
  return x.contiguous();
}

void check_tables(ExactCall& call, const ExactOptions& options) {
  call.lag_bias = table(call, "lag_bias", "[1 or H, N+M-1]", options.lag_bias, -1);
  call.lag_keys =
      table(call, "lag_keys", "[1 or H, N+M-1, D]", options.lag_keys, call.d);
  call.lag_values =
      table(call, "lag_values", "[1 or H, N+M-1, E]", options.lag_values, call.e);
  if (!options.key_bias.defined()) return;
  expect_tensor(kOp, "key_bias", "[B, H, M]", options.key_bias,
                {call.b, call.h, call.m}, call.q);
  call.key_bias = options.key_bias.unsqueeze(-1).contiguous();
}

/// Rows and keys of one sequence, and how they stand to each other. Starts that are
/// given hold for every sequence, and so does the entry of a pair (i, j). Otherwise the
/// last query of each sequence stands at its last key, whatever was padded behind
/// them, and a pair with lag c reads entry c + N - 1.
ExactPiece piece_of(const ExactCall& call, const ExactOptions& options,
                    const Sequence& at, int64_t head) {
  ExactPiece piece{at.row, head, at.query_begin, at.queries, at.key_begin, at.keys,
                   0,      0};
  piece.shift = at.keys - at.queries;
  piece.first_lag = call.n - at.queries;
  if (options.query_start) {
    piece.shift = *options.query_start - options.key_start;
    piece.first_lag = call.m - at.keys;
  }
  return piece;
}

void cut(ExactCall& call, const ExactOptions& options) {
  // A causal row sees keys by position: queries and keys need not be one sequence.
  const BatchShape batch{call.b, call.n, call.m, false};
  const auto sequences =
      read_sequences(kOp, batch,
                     {options.lengths, options.key_lengths, options.cu_seqlens,
                      options.key_cu_seqlens, options.starts, options.key_starts});
  int64_t covered = 0;
  for (const Sequence& at : sequences.each) {
    if (at.queries == 0 || at.keys == 0) continue;
    covered += at.queries;
    for (int64_t h = 0; h < call.h; ++h)
      call.pieces.push_back(piece_of(call, options, at, h));
  }
  call.covers = covered == call.b * call.n;
}

}  // namespace

ExactCall check_exact(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const ExactOptions& options) {
  ExactCall call;
  call.q = q, call.k = k, call.v = v;
  check_sizes(call);
  call.q = q.contiguous(), call.k = k.contiguous(), call.v = v.contiguous();
  call.causal = options.causal;
  const double width = static_cast<double>(std::max<int64_t>(1, call.d));
  call.scale = options.scale.value_or(1.0 / std::sqrt(width));
  TORCH_CHECK(std::isfinite(call.scale), kOp, ": expected a finite scale, got ",
              call.scale);
  call.window = options.window.value_or(0);
  TORCH_CHECK(!options.window || *options.window > 0, kOp,
              ": expected window >= 1 or none, got ", call.window);
  check_tables(call, options);
  cut(call, options);
  return call;
}

}  // namespace lagwise::ops
