#include "bench/recurrence.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstdint>

// The whole baseline is these plain loops, so the compiler gets every chance:
// -O3, reordered sums, no aliasing (believed only of parameters: keep these
// functions apart), AVX2 and FMA. Not arch=haswell: its tuning is twice as slow.
#if defined(__clang__)  // reads this for clang-tidy alone
#define LAGWISE_FAST __attribute__((noinline))
#elif defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)  // ASan dislikes clones
#define LAGWISE_FAST                                         \
  __attribute__((target_clones("arch=x86-64-v3", "default"), \
                 optimize("O3", "fast-math"), noinline))
#else
#define LAGWISE_FAST __attribute__((optimize("O3", "fast-math"), noinline))
#endif

namespace lagwise::bench {
namespace {

struct Width {
  int64_t d, e;
};

// The two-walk form is written as public code has it, with plain pointers; the
// one-walk form below promises that they do not overlap.

/// S += a b^T
LAGWISE_FAST void add_outer(Width w, float* s, const float* a, const float* b) {
  for (int64_t d = 0; d < w.d; ++d)
    for (int64_t e = 0; e < w.e; ++e) s[d * w.e + e] += a[d] * b[e];
}

/// y = S^T x
LAGWISE_FAST void read_columns(Width w, const float* s, const float* x, float* y) {
  for (int64_t e = 0; e < w.e; ++e) y[e] = 0.0f;
  for (int64_t d = 0; d < w.d; ++d)
    for (int64_t e = 0; e < w.e; ++e) y[e] += x[d] * s[d * w.e + e];
}

/// y = S x
LAGWISE_FAST void read_rows(Width w, const float* s, const float* x, float* y) {
  for (int64_t d = 0; d < w.d; ++d) {
    float sum = 0.0f;
    for (int64_t e = 0; e < w.e; ++e) sum += s[d * w.e + e] * x[e];
    y[d] = sum;
  }
}

/// S += a b^T, then y = S^T x, in one walk over S.
LAGWISE_FAST void add_and_read_columns(Width w, float* __restrict s,
                                       const float* __restrict a,
                                       const float* __restrict b,
                                       const float* __restrict x, float* __restrict y) {
  for (int64_t e = 0; e < w.e; ++e) y[e] = 0.0f;
  for (int64_t d = 0; d < w.d; ++d) {
    for (int64_t e = 0; e < w.e; ++e) {
      const float updated = s[d * w.e + e] + a[d] * b[e];
      s[d * w.e + e] = updated;
      y[e] += x[d] * updated;
    }
  }
}

/// S += a b^T, then y = S x, in one walk over S.
LAGWISE_FAST void add_and_read_rows(Width w, float* __restrict s,
                                    const float* __restrict a,
                                    const float* __restrict b,
                                    const float* __restrict x, float* __restrict y) {
  for (int64_t d = 0; d < w.d; ++d) {
    float sum = 0.0f;
    for (int64_t e = 0; e < w.e; ++e) {
      const float updated = s[d * w.e + e] + a[d] * b[e];
      s[d * w.e + e] = updated;
      sum += updated * x[e];
    }
    y[d] = sum;
  }
}

/// S += q g^T, then dk = S v and dv = S^T k, in one walk over S.
LAGWISE_FAST void add_and_read_both(Width w, float* __restrict s,
                                    const float* __restrict q,
                                    const float* __restrict g,
                                    const float* __restrict k,
                                    const float* __restrict v, float* __restrict dk,
                                    float* __restrict dv) {
  for (int64_t e = 0; e < w.e; ++e) dv[e] = 0.0f;
  for (int64_t d = 0; d < w.d; ++d) {
    float sum = 0.0f;
    for (int64_t e = 0; e < w.e; ++e) {
      const float updated = s[d * w.e + e] + q[d] * g[e];
      s[d * w.e + e] = updated;
      sum += updated * v[e];
      dv[e] += k[d] * updated;
    }
    dk[d] = sum;
  }
}

/// z += factor x
LAGWISE_FAST void add_scaled(int64_t n, float* __restrict z, float factor,
                             const float* __restrict x) {
  for (int64_t i = 0; i < n; ++i) z[i] += factor * x[i];
}

/// y = factor x; y and x may be the same.
LAGWISE_FAST void scale(int64_t n, float factor, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

LAGWISE_FAST float dot(int64_t n, const float* __restrict x,
                       const float* __restrict y) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/// Rows of nothing give zeros, not NaN.
float inverse(float den) { return den == 0.0f ? 0.0f : 1.0f / den; }

/// One head's rows and its state: s [D, E] and z [D].
struct Head {
  int64_t n;
  Width w;
  const float *q, *k, *v;
  float *s = nullptr, *z = nullptr;
};

struct ForwardOut {
  float* out;
  float* den;  ///< null: no denominator
  float eps;
};

void forward(const Head& head, const ForwardOut& to, Passes passes) {
  const Width w = head.w;
  for (int64_t i = 0; i < head.n; ++i) {
    const float *q = head.q + i * w.d, *k = head.k + i * w.d, *v = head.v + i * w.e;
    float* o = to.out + i * w.e;
    if (passes == Passes::one) {
      add_and_read_columns(w, head.s, k, v, q, o);
    } else {
      add_outer(w, head.s, k, v);
      read_columns(w, head.s, q, o);
    }
    if (to.den) {
      add_scaled(w.d, head.z, 1.0f, k);
      to.den[i] = dot(w.d, q, head.z) + to.eps;
      scale(w.e, inverse(to.den[i]), o, o);
    }
  }
}

struct BackwardIn {
  const float *out, *den, *grad;
  float* g;  ///< [E]: the row g_i, when there is a denominator
};

/// g_i = do_i / den_i, and c_i, the gradient of den_i.
struct RowGradient {
  const float* g;
  float c;
};

RowGradient row_gradient(const BackwardIn& from, Width w, int64_t i) {
  const float* grad = from.grad + i * w.e;
  if (!from.den) return {grad, 0.0f};
  const float factor = inverse(from.den[i]);
  scale(w.e, factor, grad, from.g);
  return {from.g, -factor * dot(w.e, grad, from.out + i * w.e)};
}

void query_gradient(const Head& head, const BackwardIn& from, float* to,
                    Passes passes) {
  const Width w = head.w;
  for (int64_t i = 0; i < head.n; ++i) {
    const float *k = head.k + i * w.d, *v = head.v + i * w.e;
    float* dq = to + i * w.d;
    const auto [g, c] = row_gradient(from, w, i);
    if (passes == Passes::one) {
      add_and_read_rows(w, head.s, k, v, g, dq);
    } else {
      add_outer(w, head.s, k, v);
      read_rows(w, head.s, g, dq);
    }
    if (from.den) {
      add_scaled(w.d, head.z, 1.0f, k);
      add_scaled(w.d, dq, c, head.z);
    }
  }
}

struct KeyValueOut {
  float *dk, *dv;
};

void key_value_gradient(const Head& head, const BackwardIn& from, const KeyValueOut& to,
                        Passes passes) {
  const Width w = head.w;
  for (int64_t i = head.n - 1; i >= 0; --i) {
    const float *q = head.q + i * w.d, *k = head.k + i * w.d, *v = head.v + i * w.e;
    float *dk = to.dk + i * w.d, *dv = to.dv + i * w.e;
    const auto [g, c] = row_gradient(from, w, i);
    if (passes == Passes::one) {
      add_and_read_both(w, head.s, q, g, k, v, dk, dv);
    } else {
      add_outer(w, head.s, q, g);
      read_rows(w, head.s, v, dk);
      read_columns(w, head.s, k, dv);
    }
    if (from.den) {
      add_scaled(w.d, head.z, c, q);
      add_scaled(w.d, dk, 1.0f, head.z);
    }
  }
}

void check(const at::Tensor& x, const char* name) {
  TORCH_CHECK(x.dim() == 4 && x.is_contiguous() && x.scalar_type() == at::kFloat,
              "recurrence: expected ", name, " [B, H, N, D] contiguous float32, got ",
              x.sizes(), " ", x.scalar_type());
}

Head head_at(int64_t h, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t n = q.size(2), d = q.size(3), e = v.size(3);
  return {.n = n,
          .w = {d, e},
          .q = q.data_ptr<float>() + h * n * d,
          .k = k.data_ptr<float>() + h * n * d,
          .v = v.data_ptr<float>() + h * n * e};
}

/// An empty state for `head`; ATen aligns it to 64 bytes.
at::Tensor give_state(Head& head) {
  const auto [d, e] = head.w;
  at::Tensor state = at::zeros({d * e + d}, at::kFloat);
  head.s = state.data_ptr<float>();
  head.z = head.s + d * e;
  return state;
}

template <class OneHead>
void for_each_head(const at::Tensor& q, const OneHead& one_head) {
  at::parallel_for(0, q.size(0) * q.size(1), 1, [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) one_head(h);
  });
}

}  // namespace

RecurrenceResult recurrence(const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const RecurrenceOptions& options) {
  check(q, "q"), check(k, "k"), check(v, "v");
  RecurrenceResult result;
  result.out = at::empty(v.sizes(), v.options());
  if (options.normalised) {
    result.den = at::empty({q.size(0), q.size(1), q.size(2)}, q.options());
  }
  for_each_head(q, [&](int64_t h) {
    Head head = head_at(h, q, k, v);
    const at::Tensor state = give_state(head);
    ForwardOut to = {.out = result.out.data_ptr<float>() + h * head.n * head.w.e,
                     .den = nullptr,
                     .eps = static_cast<float>(options.eps)};
    if (options.normalised) to.den = result.den.data_ptr<float>() + h * head.n;
    forward(head, to, options.passes);
  });
  return result;
}

RecurrenceGradients recurrence_backward(const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v,
                                        const RecurrenceResult& result,
                                        const at::Tensor& grad_out,
                                        const RecurrenceOptions& options) {
  check(q, "q"), check(k, "k"), check(v, "v"), check(grad_out, "grad_out");
  const RecurrenceGradients grads = {at::empty(q.sizes(), q.options()),
                                     at::empty(k.sizes(), k.options()),
                                     at::empty(v.sizes(), v.options())};
  for_each_head(q, [&](int64_t h) {
    Head head = head_at(h, q, k, v);
    const int64_t d_at = h * head.n * head.w.d, e_at = h * head.n * head.w.e;
    const at::Tensor scaled = at::empty({head.w.e}, at::kFloat);
    BackwardIn from = {.out = result.out.data_ptr<float>() + e_at,
                       .den = nullptr,
                       .grad = grad_out.data_ptr<float>() + e_at,
                       .g = scaled.data_ptr<float>()};
    if (options.normalised) from.den = result.den.data_ptr<float>() + h * head.n;
    const at::Tensor past = give_state(head);
    query_gradient(head, from, grads.dq.data_ptr<float>() + d_at, options.passes);
    const at::Tensor future = give_state(head);
    const KeyValueOut to = {grads.dk.data_ptr<float>() + d_at,
                            grads.dv.data_ptr<float>() + e_at};
    key_value_gradient(head, from, to, options.passes);
  });
  return grads;
}

}  // namespace lagwise::bench
