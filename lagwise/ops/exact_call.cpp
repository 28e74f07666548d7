#include "lagwise/ops/exact_call.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "lagwise/ops/expect.h"

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
}

/// Whole numbers on the CPU; empty for a meta tensor, which has none.
std::vector<int64_t> numbers(const char* name, const char* shape, const at::Tensor& x,
                             int64_t count) {
  TORCH_CHECK(x.dim() == 1 && (count < 0 || x.size(0) == count), kOp, ": expected ",
              name, " ", shape, ", got ", x.sizes());
  TORCH_CHECK(x.scalar_type() == at::kLong || x.scalar_type() == at::kInt, kOp,
              ": expected ", name, " of type Long or Int, got ", x.scalar_type());
  if (x.is_meta()) return {};
  const at::Tensor dense = x.to(at::kLong).contiguous();
  return {dense.data_ptr<int64_t>(), dense.data_ptr<int64_t>() + dense.numel()};
}

void add_piece(ExactCall& call, const ExactPiece& piece) {
  if (piece.rows > 0 && piece.keys > 0) call.pieces.push_back(piece);
}

void cut_by_lengths(ExactCall& call, const at::Tensor& lengths) {
  const auto length = numbers("lengths", "[B]", lengths, call.b);
  for (size_t i = 0; i < length.size(); ++i) {
    TORCH_CHECK(0 <= length[i] && length[i] <= call.m, kOp,
                ": expected lengths from 0 to M = ", call.m, ", got ", length[i]);
    const int64_t rows = call.n == call.m ? length[i] : call.n;
    for (int64_t h = 0; h < call.h; ++h)
      add_piece(call, {static_cast<int64_t>(i), h, 0, rows, 0, length[i]});
  }
}

void cut_by_sequences(ExactCall& call, const ExactOptions& options) {
  TORCH_CHECK(!options.lengths.defined(), kOp,
              ": expected lengths or cu_seqlens, got both");
  TORCH_CHECK(call.b == 1 && call.n == call.m, kOp,
              ": expected B = 1 and N = M with cu_seqlens, got B = ", call.b,
              ", N = ", call.n, ", M = ", call.m);
  TORCH_CHECK(call.shift == 0, kOp,
              ": expected query_start = key_start with cu_seqlens, got ",
              call.shift + options.key_start, " and ", options.key_start);
  const auto ends = numbers("cu_seqlens", "[S+1]", options.cu_seqlens, -1);
  if (options.cu_seqlens.is_meta()) return;
  TORCH_CHECK(!ends.empty() && ends.front() == 0 && ends.back() == call.n &&
                  std::is_sorted(ends.begin(), ends.end()),
              kOp, ": expected cu_seqlens rising from 0 to N = ", call.n, ", got ",
              at::IntArrayRef(ends));
  for (int64_t h = 0; h < call.h; ++h)
    for (size_t s = 0; s + 1 < ends.size(); ++s) {
      const int64_t begin = ends[s], rows = ends[s + 1] - begin;
      add_piece(call, {0, h, begin, rows, begin, rows});
    }
}

void cut(ExactCall& call, const ExactOptions& options) {
  if (options.cu_seqlens.defined()) return cut_by_sequences(call, options);
  if (options.lengths.defined()) {
    call.covers = false;
    return cut_by_lengths(call, options.lengths);
  }
  call.covers = call.m > 0;
  for (int64_t i = 0; i < call.b; ++i)
    for (int64_t h = 0; h < call.h; ++h) add_piece(call, {i, h, 0, call.n, 0, call.m});
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
  call.shift = options.query_start.value_or(options.key_start + call.m - call.n) -
               options.key_start;
  call.window = options.window.value_or(0);
  TORCH_CHECK(!options.window || *options.window > 0, kOp,
              ": expected window >= 1 or none, got ", call.window);
  check_tables(call, options);
  cut(call, options);
  return call;
}

}  // namespace lagwise::ops
