#include "lagwise/ops/exact_step.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <cmath>

#include "lagwise/kernels/exact_step.h"
#include "lagwise/ops/parallel/heads.h"
#include "lagwise/ops/torch/define.h"
#include "lagwise/ops/torch/expect.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using OptionalTensor = Optional<Tensor>;

constexpr const char* kOp = "exact_attention_step";
/// Keys a thread takes at a time. Fixed, so that the order of the sums is.
constexpr int64_t kSegment = 2048;

void check_cache(const char* name, const char* shape, const Tensor& x,
                 at::IntArrayRef sizes, const Tensor& q) {
  TORCH_CHECK(has_sizes(x, sizes), kOp, ": expected ", name, " ", shape, " = ",
              wanted_sizes(sizes), ", got ", x.sizes());
  const bool half = x.scalar_type() == at::kBFloat16 && q.scalar_type() == at::kFloat;
  TORCH_CHECK(half || x.scalar_type() == q.scalar_type(), kOp, ": expected ", name,
              " of the type of q, ", q.scalar_type(), ", or BFloat16 with Float, got ",
              x.scalar_type());
}

void check_table(const char* name, const OptionalTensor& x, int64_t m, int64_t width,
                 const Tensor& q) {
  if (!x) return;
  const int64_t heads = x->dim() > 0 && x->size(0) == 1 ? 1 : q.size(1);
  if (width < 0)
    expect_tensor(kOp, name, "[1 or H, M]", *x, {heads, m}, q);
  else
    expect_tensor(kOp, name, "[1 or H, M, width]", *x, {heads, m, width}, q);
}

void check(const Tensor& q, const Tensor& k, const Tensor& v,
           const OptionalTensor& lag_bias, const OptionalTensor& lag_keys,
           const OptionalTensor& lag_values, Optional<int64_t> window,
           const OptionalTensor& key_bias) {
  TORCH_CHECK(q.dim() == 3, kOp, ": expected q [B, H, D], got ", q.sizes());
  TORCH_CHECK(q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble, kOp,
              ": expected q of type Float or Double, got ", q.scalar_type());
  check_cache("k", "[B, H, M, D]", k, {q.size(0), q.size(1), -1, q.size(2)}, q);
  check_cache("v", "[B, H, M, E]", v, {q.size(0), q.size(1), k.size(2), -1}, q);
  TORCH_CHECK(k.scalar_type() == v.scalar_type(), kOp,
              ": expected k and v of one type, got ", k.scalar_type(), " and ",
              v.scalar_type());
  check_table("lag_bias", lag_bias, k.size(2), -1, q);
  check_table("lag_keys", lag_keys, k.size(2), k.size(3), q);
  check_table("lag_values", lag_values, k.size(2), v.size(3), q);
  if (key_bias)
    expect_tensor(kOp, "key_bias", "[B, H, M]", *key_bias,
                  {q.size(0), q.size(1), k.size(2)}, q);
  TORCH_CHECK(!window || *window > 0, kOp, ": expected window >= 1 or none, got ",
              window.value_or(0));
}

Tensor dense_rows(const Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

/// A table in the order of the keys: the first entry is the farthest lag's.
template <class T>
MatView<const T> table_of(const Tensor& x, int64_t head) {
  if (!x.defined()) return {};
  const int64_t width = x.dim() == 3 ? x.size(2) : 1;
  const int64_t h = x.size(0) == 1 ? 0 : head;
  return MatView<const T>{x.data_ptr<T>() + h * x.size(1) * width, x.size(1), width,
                          width, 1}
      .reversed();
}

template <class T, class S>
void run(const Tensor& q, const Tensor& k, const Tensor& v,
         const ExactStepOptions& options, double scale, const Tensor& out) {
  const int64_t heads = q.size(0) * q.size(1), m = k.size(2), e = v.size(3);
  const int64_t first = std::max<int64_t>(0, m - options.window.value_or(m));
  const int64_t segments = (m - first + kSegment - 1) / kSegment;
  const Tensor partials = at::empty({heads, segments, e + 2}, q.options());
  for_each_task<T>(heads * segments, kernels::kStepKeys, [&](int64_t task, T* own) {
    const int64_t head = task / segments, begin = first + task % segments * kSegment;
    const kernels::StepHead<T, S> at{q.data_ptr<T>() + head * q.size(2),
                                     head_view<const S>(k, head),
                                     head_view<const S>(v, head),
                                     static_cast<T>(scale),
                                     table_of<T>(options.lag_bias, head % q.size(1)),
                                     table_of<T>(options.lag_keys, head % q.size(1)),
                                     table_of<T>(options.lag_values, head % q.size(1)),
                                     head_column<const T>(options.key_bias, head)};
    kernels::exact_step<T, S>(at, begin, std::min(begin + kSegment, m),
                              partials.data_ptr<T>() + task * (e + 2), own);
  });
  for (int64_t head = 0; head < heads; ++head)
    kernels::exact_step_join<T>(partials.data_ptr<T>() + head * segments * (e + 2),
                                segments, e, out.data_ptr<T>() + head * e);
}

Tensor step_cpu(const Tensor& q, const Tensor& k, const Tensor& v,
                Optional<double> given_scale, const OptionalTensor& lag_bias,
                const OptionalTensor& lag_keys, const OptionalTensor& lag_values,
                Optional<int64_t> window, const OptionalTensor& key_bias) {
  const auto dense = [](const OptionalTensor& x) {
    return x ? x->contiguous() : Tensor();
  };
  check(q, k, v, lag_bias, lag_keys, lag_values, window, key_bias);
  const auto width = static_cast<double>(std::max<int64_t>(1, q.size(2)));
  const double scale = given_scale.value_or(1.0 / std::sqrt(width));
  const Tensor out = at::empty({q.size(0), q.size(1), v.size(3)}, q.options());
  const Tensor rows = q.contiguous(), keys = dense_rows(k), values = dense_rows(v);
  const ExactStepOptions options{scale,           dense(lag_bias),
                                 dense(lag_keys), dense(lag_values),
                                 window,          key_bias.value_or(Tensor())};
  if (k.scalar_type() == at::kBFloat16)
    run<float, kernels::Bfloat16>(rows, keys, values, options, scale, out);
  else if (k.scalar_type() == at::kFloat)
    run<float, float>(rows, keys, values, options, scale, out);
  else
    run<double, double>(rows, keys, values, options, scale, out);
  return out;
}

auto& step_operator() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lagwise::exact_attention_step", "")
                             .typed<decltype(step_cpu)>();
  return op;
}

Tensor step_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                     Optional<double> scale, const OptionalTensor& lag_bias,
                     const OptionalTensor& lag_keys, const OptionalTensor& lag_values,
                     Optional<int64_t> window, const OptionalTensor& key_bias) {
  for (const OptionalTensor& x :
       {OptionalTensor(q), OptionalTensor(k), OptionalTensor(v), lag_bias, lag_keys,
        lag_values, key_bias})
    TORCH_CHECK(!(x && x->requires_grad() && at::GradMode::is_enabled()), kOp,
                ": expected no gradient to be wanted, got a tensor that requires one; "
                "use exact_attention");
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  return step_operator().call(q, k, v, scale, lag_bias, lag_keys, lag_values, window,
                              key_bias);
}

}  // namespace

Tensor exact_attention_step(const Tensor& q, const Tensor& k, const Tensor& v,
                            const ExactStepOptions& options) {
  const auto optional = [](const Tensor& x) {
    return x.defined() ? OptionalTensor(x) : kNone;
  };
  return step_operator().call(q, k, v, options.scale, optional(options.lag_bias),
                              optional(options.lag_keys), optional(options.lag_values),
                              options.window, optional(options.key_bias));
}

TORCH_LIBRARY_FRAGMENT(lagwise, m) {
  define(m,
         "exact_attention_step(Tensor q, Tensor k, Tensor v, *, float? scale=None, "
         "Tensor? lag_bias=None, Tensor? lag_keys=None, Tensor? lag_values=None, "
         "SymInt? window=None, Tensor? key_bias=None) -> Tensor");
}
TORCH_LIBRARY_IMPL(lagwise, CPU, m) { m.impl("exact_attention_step", step_cpu); }
TORCH_LIBRARY_IMPL(lagwise, Autograd, m) {
  m.impl("exact_attention_step", step_autograd);
}

}  // namespace lagwise::ops
