#include "lagwise/kernels/exact_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/exact_step.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/exact_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

template <class Tag, class T>
HWY_INLINE hn::Vec<Tag> load_stored(Tag tag, const T* from) {
  return hn::LoadU(tag, from);
}
/// The bits of a bfloat16 are the upper half of a float's.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_stored(Tag tag, const Bfloat16* from) {
  const hn::RebindToUnsigned<Tag> bits;
  const hn::Rebind<uint16_t, Tag> halves;
  const auto half = hn::LoadU(halves, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(tag, hn::ShiftLeft<16>(hn::PromoteTo(bits, half)));
}

template <class T>
HWY_INLINE T stored(T x) {
  return x;
}
HWY_INLINE float stored(Bfloat16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// q . x over d numbers.
template <class T, class S>
HWY_INLINE T dot_stored(const T* HWY_RESTRICT q, const S* HWY_RESTRICT x, int64_t d) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto even = hn::Zero(tag), odd = even;
  int64_t i = 0;
  for (; i + 2 * lanes <= d; i += 2 * lanes) {
    even = hn::MulAdd(hn::LoadU(tag, q + i), load_stored(tag, x + i), even);
    odd =
        hn::MulAdd(hn::LoadU(tag, q + i + lanes), load_stored(tag, x + i + lanes), odd);
  }
  for (; i + lanes <= d; i += lanes)
    even = hn::MulAdd(hn::LoadU(tag, q + i), load_stored(tag, x + i), even);
  T sum = hn::GetLane(hn::SumOfLanes(tag, hn::Add(even, odd)));
  for (; i < d; ++i) sum += q[i] * stored(x[i]);
  return sum;
}

/// o[0, 8 vectors) += sum_j w[j] x_j, the sums held in registers.
template <class T, class S>
HWY_INLINE void add_strip(const T* w, const S* x, int64_t step, int64_t keys, T* o) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto c0 = hn::LoadU(tag, o), c1 = hn::LoadU(tag, o + lanes);
  auto c2 = hn::LoadU(tag, o + 2 * lanes), c3 = hn::LoadU(tag, o + 3 * lanes);
  auto c4 = hn::LoadU(tag, o + 4 * lanes), c5 = hn::LoadU(tag, o + 5 * lanes);
  auto c6 = hn::LoadU(tag, o + 6 * lanes), c7 = hn::LoadU(tag, o + 7 * lanes);
  for (int64_t j = 0; j < keys; ++j, x += step) {
    const auto f = hn::Set(tag, w[j]);
    c0 = hn::MulAdd(f, load_stored(tag, x), c0);
    c1 = hn::MulAdd(f, load_stored(tag, x + lanes), c1);
    c2 = hn::MulAdd(f, load_stored(tag, x + 2 * lanes), c2);
    c3 = hn::MulAdd(f, load_stored(tag, x + 3 * lanes), c3);
    c4 = hn::MulAdd(f, load_stored(tag, x + 4 * lanes), c4);
    c5 = hn::MulAdd(f, load_stored(tag, x + 5 * lanes), c5);
    c6 = hn::MulAdd(f, load_stored(tag, x + 6 * lanes), c6);
    c7 = hn::MulAdd(f, load_stored(tag, x + 7 * lanes), c7);
  }
  hn::StoreU(c0, tag, o), hn::StoreU(c1, tag, o + lanes);
  hn::StoreU(c2, tag, o + 2 * lanes), hn::StoreU(c3, tag, o + 3 * lanes);
  hn::StoreU(c4, tag, o + 4 * lanes), hn::StoreU(c5, tag, o + 5 * lanes);
  hn::StoreU(c6, tag, o + 6 * lanes), hn::StoreU(c7, tag, o + 7 * lanes);
}

/// o += sum_j w[j] x_j over rows [begin, begin + keys).
template <class T, class S>
HWY_NOINLINE void add_rows(const T* w, MatView<const S> rows, int64_t begin,
                           int64_t keys, T* o) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const S* x = rows.data + begin * rows.row_step;
  int64_t t = 0;
  for (; t + 8 * lanes <= rows.cols; t += 8 * lanes)
    add_strip(w, x + t, rows.row_step, keys, o + t);
  for (; t + lanes <= rows.cols; t += lanes) {
    auto c = hn::LoadU(tag, o + t);
    for (int64_t j = 0; j < keys; ++j)
      c = hn::MulAdd(hn::Set(tag, w[j]), load_stored(tag, x + j * rows.row_step + t),
                     c);
    hn::StoreU(c, tag, o + t);
  }
  for (; t < rows.cols; ++t)
    for (int64_t j = 0; j < keys; ++j) o[t] += w[j] * stored(x[j * rows.row_step + t]);
}

/// The larger of two, and NaN if either is.
template <class T>
T larger(T a, T b) {
  return a < b || std::isnan(b) ? b : a;
}

/// Whether the bias hides all of keys [begin, end).
template <class T, class S>
bool hides_all(const StepHead<T, S>& head, int64_t begin, int64_t end) {
  const auto hides = [](MatView<const T> bias, int64_t j) {
    return bias.data && bias(j, 0) == -std::numeric_limits<T>::infinity();
  };
  bool all = true;
  for (int64_t j = begin; all && j < end; ++j)
    all = hides(head.lag_bias, j) || hides(head.key_bias, j);
  return all;
}

/// The scores of keys [begin, begin + keys); returns the largest.
template <class T, class S>
HWY_NOINLINE T score_keys(const StepHead<T, S>& head, int64_t begin, int64_t keys,
                          T* scores) {
  const int64_t d = head.k.cols;
  T top = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < keys; ++j) {
    T s = dot_stored(head.q, head.k.data + (begin + j) * head.k.row_step, d);
    if (head.lag_keys.data)
      s += dot_stored(head.q, head.lag_keys.data + (begin + j) * head.lag_keys.row_step,
                      d);
    s *= head.scale;
    if (head.lag_bias.data) s += head.lag_bias(begin + j, 0);
    if (head.key_bias.data) s += head.key_bias(begin + j, 0);
    scores[j] = s;
    top = larger(s, top);
  }
  return top;
}

template <class T, class S>
void step_of(const StepHead<T, S>& head, int64_t begin, int64_t end, T* partial,
             T* scratch) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const int64_t e = head.v.cols;
  T top = kNever, sum = 0;
  std::fill(partial, partial + e, T{0});
  for (int64_t j = begin; j < end; j += kStepKeys) {
    const int64_t keys = std::min(kStepKeys, end - j);
    const T here = score_keys(head, j, keys, scratch);
    const T now = larger(here, top);
    if (now == kNever) continue;
    if (now != top) {
      const T factor = std::exp(top - now);
      for (int64_t t = 0; t < e; ++t) partial[t] *= factor;
      sum *= factor;
      top = now;
    }
    std::fill(scratch + keys, scratch + round_up(keys, lanes), kNever);
    sum += exponentiate(scratch, keys, top, T{1});
    add_rows(scratch, head.v, j, keys, partial);
    if (head.lag_values.data) add_rows(scratch, head.lag_values, j, keys, partial);
  }
  // Where no key weighs anything: 0 if the bias says so, else 0 / 0.
  if (top == kNever && !hides_all(head, begin, end))
    sum = std::numeric_limits<T>::quiet_NaN();
  partial[e] = top;
  partial[e + 1] = sum;
}

}  // namespace

// Highway's tables hold plain functions, one per type.
void exact_step_f32(const StepHead<float, float>& head, int64_t begin, int64_t end,
                    float* partial, float* scratch) {
  step_of(head, begin, end, partial, scratch);
}
void exact_step_f64(const StepHead<double, double>& head, int64_t begin, int64_t end,
                    double* partial, double* scratch) {
  step_of(head, begin, end, partial, scratch);
}
void exact_step_bf16(const StepHead<float, Bfloat16>& head, int64_t begin, int64_t end,
                     float* partial, float* scratch) {
  step_of(head, begin, end, partial, scratch);
}

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

HWY_EXPORT(exact_step_f32);
HWY_EXPORT(exact_step_f64);
HWY_EXPORT(exact_step_bf16);

template <class T, class S>
void exact_step(const StepHead<T, S>& head, int64_t begin, int64_t end, T* partial,
                T* scratch) noexcept {
  if constexpr (sizeof(S) == 2)
    HWY_DYNAMIC_DISPATCH(exact_step_bf16)(head, begin, end, partial, scratch);
  else if constexpr (sizeof(S) == 4)
    HWY_DYNAMIC_DISPATCH(exact_step_f32)(head, begin, end, partial, scratch);
  else
    HWY_DYNAMIC_DISPATCH(exact_step_f64)(head, begin, end, partial, scratch);
}

template <class T>
void exact_step_join(const T* partials, int64_t count, int64_t e, T* out) noexcept {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  T top = kNever, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T* const part = partials + i * (e + 2);
    top = part[e] < top || std::isnan(top) ? top : part[e];
    sum += part[e] == kNever ? part[e + 1] : T{0};  // 0 or NaN
  }
  std::fill(out, out + e, top == kNever ? sum : T{0});
  if (top == kNever) return;
  sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T* const part = partials + i * (e + 2);
    if (part[e] == kNever) continue;
    const T factor = std::exp(part[e] - top);
    sum += factor * part[e + 1];
    for (int64_t t = 0; t < e; ++t) out[t] += factor * part[t];
  }
  for (int64_t t = 0; t < e; ++t) out[t] /= sum;
}

template void exact_step<float, float>(const StepHead<float, float>&, int64_t, int64_t,
                                       float*, float*) noexcept;
template void exact_step<double, double>(const StepHead<double, double>&, int64_t,
                                         int64_t, double*, double*) noexcept;
template void exact_step<float, Bfloat16>(const StepHead<float, Bfloat16>&, int64_t,
                                          int64_t, float*, float*) noexcept;
template void exact_step_join<float>(const float*, int64_t, int64_t, float*) noexcept;
template void exact_step_join<double>(const double*, int64_t, int64_t,
                                      double*) noexcept;

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
