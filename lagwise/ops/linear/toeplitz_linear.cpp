#include "lagwise/ops/toeplitz_linear.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/fft_irfft.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include "lagwise/ops/linear/toeplitz_far.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/differentiable_pair.h"
#include "lagwise/ops/torch/expect.h"

// Inside a head everything lies with time last, the axis of the transforms: q [D, N],
// k [D, M], w = [v | 1] [E+1, M], so that the last row of the sums is the denominator.

namespace lagwise::ops {
namespace {

using at::Tensor;
constexpr const char* kOp = "toeplitz_linear";

/// What a call takes, in the order of its schema.
struct ToeplitzArguments {
  Tensor q, k, v, lag_bias;
  double eps;
};

template <class Visit>
void each_argument(ToeplitzArguments& x, const Visit& visit) {
  visit(x.q), visit(x.k), visit(x.v), visit(x.lag_bias), visit(x.eps);
}

const DifferentiablePair kPair = {kOp,
                                  "lagwise::_toeplitz_linear",
                                  "lagwise::_toeplitz_linear_backward",
                                  {0, 1, 2, 3},  // q, k, v, lag_bias
                                  2,
                                  1};

void check(const ToeplitzArguments& given) {
  const auto& [q, k, v, lag_bias, eps] = given;
  TORCH_CHECK(q.dim() == 4, kOp, ": expected q [B, H, N, D], got ", q.sizes());
  TORCH_CHECK(q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble, kOp,
              ": expected floating-point tensors, Float or Double, got ",
              q.scalar_type());
  const int64_t b = q.size(0), h = q.size(1), n = q.size(2);
  expect_tensor(kOp, "k", "[B, H, M, D]", k, {b, h, -1, q.size(3)}, q);
  const int64_t m = k.size(2), lags = std::max<int64_t>(0, n + m - 1);
  expect_tensor(kOp, "v", "[B, H, M, E]", v, {b, h, m, -1}, q);
  const bool shared = lag_bias.dim() > 0 && lag_bias.size(0) == 1;
  expect_tensor(kOp, "lag_bias", "[1 or H, N+M-1]", lag_bias, {shared ? 1 : h, lags},
                q);
  TORCH_CHECK(eps >= 0, kOp, ": expected eps >= 0, got ", eps);
}

/// The next length of at least n with factors 2, 3 and 5 only: fast to transform.
int64_t transform_length(int64_t n) {
  for (;; ++n) {
    int64_t rest = n;
    for (const int64_t factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

/// Finite, also for a bias that hides everything.
Tensor largest(const Tensor& bias) { return bias.max().clamp_min(-1e30); }

/// One head with all that its channels share.
struct ToeplitzHead {
  Tensor q, k, w;   // [D, N], [D, M], [E+1, M]
  Tensor bias;      // [N+M-1]
  Tensor spectrum;  // [P/2+1] of t, lag 0 first, negative lags at the end
  Tensor eps;       // [N], in units of the largest weight that the row is relative to
  FarRows far;
  int64_t n, m, length, channels;

  ToeplitzHead(const Tensor& q_in, const Tensor& k_in, const Tensor& v,
               const Tensor& bias_in, double eps_in)
      : bias(bias_in),
        far(bias, k_in.size(0)),
        n(q_in.size(0)),
        m(k_in.size(0)),
        length(transform_length(n + m - 1)) {
    q = q_in.t().contiguous(), k = k_in.t().contiguous();
    w = at::cat({v.t(), at::ones({1, m}, v.options())}, 0);
    // Weights are taken relative to the largest: exp(b) alone may overflow.
    const Tensor top = largest(bias);
    const Tensor t = at::exp(bias - top);
    eps = top.expand({n}).clone();
    if (far.any()) eps.index_copy_(0, far.rows, far.top.squeeze(1));
    eps = at::exp(std::log(eps_in) - eps);
    const Tensor gap = at::zeros({length - (n + m - 1)}, t.options());
    spectrum = at::fft_rfft(at::cat({t.slice(0, m - 1), gap, t.slice(0, 0, m - 1)}));
    // About 8 MB of numbers at a time.
    channels = std::max<int64_t>(1, (int64_t{1} << 20) / (length * w.size(0)));
  }

  int64_t d() const { return q.size(0); }

  /// The spectra of x_d w_e for channels [from, to), [to - from, E+1, P/2+1].
  Tensor spectra(const Tensor& x, const Tensor& rows, int64_t from, int64_t to) const {
    return at::fft_rfft(x.slice(0, from, to).unsqueeze(1) * rows, length);
  }
  /// Back to time, the first `rows` of it.
  Tensor back(const Tensor& product, int64_t rows) const {
    return at::fft_irfft(product, length).slice(-1, 0, rows);
  }

  /// sum_j t (q_i . k_j) w_j, [E+1, N], each row relative to its largest weight.
  Tensor sums() const {
    Tensor sum = at::zeros({w.size(0), n}, q.options());
    for (int64_t from = 0; from < d(); from += channels) {
      const int64_t to = std::min(from + channels, d());
      const Tensor y = back(spectra(k, w, from, to) * spectrum, n);
      sum += (y * q.slice(0, from, to).unsqueeze(1)).sum(0);
    }
    if (far.any()) sum.index_copy_(1, far.rows, far_sums(far, bias, q, k, w));
    return sum;
  }
};

template <class Fn>
void for_each_head(const Tensor& q, const Fn& fn) {
  for_each_task<float>(q.size(0) * q.size(1), 0, [&](int64_t task, float*) {
    const at::NoGradGuard no_graph;  // a setting of each thread
    fn(task / q.size(1), task % q.size(1));
  });
}

Tensor row_of(const Tensor& lag_bias, int64_t head) {
  return lag_bias[lag_bias.size(0) == 1 ? 0 : head];
}

bool is_empty(const Tensor& q, const Tensor& k) {
  return q.numel() == 0 || k.numel() == 0;
}

/// _toeplitz_linear: out [B, H, N, E] and the sums [B, H, E+1, N], for the backward pass.
void forward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  ToeplitzArguments x;
  read_arguments(taken.data(), x);
  check(x);
  const int64_t b = x.q.size(0), h = x.q.size(1), n = x.q.size(2), e = x.v.size(3);
  const Tensor out = at::zeros({b, h, n, e}, x.q.options());
  const Tensor sums = at::zeros({b, h, e + 1, n}, x.q.options());
  if (!is_empty(x.q, x.k))
    for_each_head(x.q, [&](int64_t i, int64_t j) {
      const ToeplitzHead head(x.q[i][j], x.k[i][j], x.v[i][j], row_of(x.lag_bias, j),
                              x.eps);
      const Tensor sum = head.sums();
      sums[i][j].copy_(sum);
      const Tensor den = sum[e] + head.eps, nothing = den.eq(0);
      const Tensor inverse = den.reciprocal().masked_fill(nothing, 0);
      out[i][j].copy_((sum.slice(0, 0, e) * inverse).t());
    });
  stack->emplace_back(out);
  stack->emplace_back(sums);
}

/// With g = [d out / den | -d out . out / den], and w as above:
///     dq_d = sum_e g_e (t * (k_d w_e))        t * : the convolution
///     dk_d = sum_e w_e (t' * (q_d g_e))       t' : t with lags reversed
///     dw_e = sum_d k_d (t' * (q_d g_e))
///     dt   = sum_de correlation of q_d g_e with k_d w_e
/// over near rows; far ones are added pair by pair. d_bias = t dt.
void head_gradient(const ToeplitzHead& head, const Tensor& all, const Tensor& dq,
                   const Tensor& dk, const Tensor& dv, const Tensor& d_bias) {
  const int64_t n = head.n, m = head.m;
  const Tensor g = head.far.any() ? all.index_fill(1, head.far.rows, 0) : all;
  Tensor dw = at::zeros_like(head.w), power = at::zeros_like(head.spectrum);
  for (int64_t from = 0; from < head.d(); from += head.channels) {
    const int64_t to = std::min(from + head.channels, head.d());
    const Tensor keys = head.spectra(head.k, head.w, from, to);
    const Tensor rows = head.spectra(head.q, g, from, to);
    dq.slice(1, from, to).copy_((head.back(keys * head.spectrum, n) * g).sum(1).t());
    const Tensor z = head.back(rows * at::conj_physical(head.spectrum), m);
    dk.slice(1, from, to).copy_((z * head.w).sum(1).t());
    dw += (z * head.k.slice(0, from, to).unsqueeze(1)).sum(0);
    power += (rows * at::conj_physical(keys)).sum(at::IntArrayRef({0, 1}));
  }
  const Tensor lag = at::fft_irfft(power, head.length);
  d_bias.copy_(at::cat({lag.slice(0, head.length - (m - 1)), lag.slice(0, 0, n)}));
  d_bias.mul_(at::exp(head.bias - largest(head.bias)));
  if (head.far.any())
    far_gradient(head.far, head.bias, head.q, head.k, head.w,
                 all.index_select(1, head.far.rows), dq.t(), dk.t(), dw, d_bias);
  dv.copy_(dw.slice(0, 0, dv.size(1)).t());
}

/// _toeplitz_linear_backward: of q, k, v and lag_bias.
void backward_op(const c10::OperatorHandle& op, Stack* stack) {
  const Stack taken = take_arguments(op, *stack);
  const Tensor& d_out = taken[0].toTensor();
  const Tensor &out = taken[2].toTensor(), &sums = taken[3].toTensor();  // after wanted
  ToeplitzArguments x;
  read_arguments(&taken[4], x);
  check(x);
  const auto& [q, k, v, lag_bias, eps] = x;
  const int64_t b = q.size(0), h = q.size(1), n = q.size(2), e = v.size(3);
  expect_tensor(kOp, "d_out", "[B, H, N, E]", d_out, {b, h, n, e}, q);
  expect_tensor(kOp, "out", "[B, H, N, E]", out, {b, h, n, e}, q);
  expect_tensor(kOp, "sums", "[B, H, E+1, N]", sums, {b, h, e + 1, n}, q);
  const Tensor per_head = at::zeros({b, h, lag_bias.size(1)}, q.options());
  const auto zeros = [](const Tensor& y) { return at::zeros(y.sizes(), y.options()); };
  const Tensor dq = zeros(q), dk = zeros(k), dv = zeros(v);
  if (!is_empty(q, k))
    for_each_head(q, [&](int64_t i, int64_t j) {
      const ToeplitzHead head(x.q[i][j], x.k[i][j], x.v[i][j], row_of(x.lag_bias, j),
                              x.eps);
      const Tensor den = sums[i][j][dv.size(3)] + head.eps;
      const Tensor inverse = den.reciprocal().masked_fill(den.eq(0), 0);
      const Tensor through = (d_out[i][j] * out[i][j]).sum(1);
      const Tensor g =
          at::cat({d_out[i][j].t(), -through.unsqueeze(0)}, 0) * inverse;  // [E+1, N]
      head_gradient(head, g, dq[i][j], dk[i][j], dv[i][j], per_head[i][j]);
    });
  const Tensor d_bias = per_head.sum(0);
  for (const Tensor& y :
       {dq, dk, dv, lag_bias.size(0) == 1 ? d_bias.sum(0, true) : d_bias})
    stack->emplace_back(y);
}

void toeplitz_linear_op(const c10::OperatorHandle&, Stack* stack) {
  call_forward<kPair>(*stack);
  stack->pop_back();  // the sums
}

}  // namespace

Tensor toeplitz_linear(const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& lag_bias, double eps) {
  Stack stack;
  write_arguments(ToeplitzArguments{q, k, v, lag_bias, eps}, stack);
  call_forward<kPair>(stack);
  return stack[0].toTensor();
}

using torch::CppFunction;

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m,
         "toeplitz_linear(Tensor q, Tensor k, Tensor v, Tensor lag_bias, *, "
         "float eps=1e-6) -> Tensor",
         CppFunction::makeFromBoxedFunction<toeplitz_linear_op>());
  define(
      m,
      "_toeplitz_linear(Tensor q, Tensor k, Tensor v, Tensor lag_bias, float eps) -> "
      "(Tensor out, Tensor sums)");
  define(m,
         "_toeplitz_linear_backward(Tensor d_out, bool[] wanted, Tensor out, "
         "Tensor sums, Tensor q, Tensor k, Tensor v, Tensor lag_bias, float eps) -> "
         "(Tensor q, Tensor k, Tensor v, Tensor lag_bias)");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) {
  m.impl("_toeplitz_linear", CppFunction::makeFromBoxedFunction<forward_op>());
  m.impl("_toeplitz_linear_backward",
         CppFunction::makeFromBoxedFunction<backward_op>());
}
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("_toeplitz_linear",
         CppFunction::makeFromBoxedFunction<differentiate<kPair>>());
  m.impl("_toeplitz_linear_backward",
         CppFunction::makeFromBoxedFunction<refuse_second<kPair>>());
}

}  // namespace lagwise::ops
