#include "lagwise/kernels/softmax_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/softmax_loss.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/feature_map-inl.h"
#include "lagwise/kernels/simd/dispatch.h"
#include "lagwise/kernels/simd/each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
T largest_of(const T* HWY_RESTRICT x, int64_t count) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  T largest = -std::numeric_limits<T>::infinity();
  int64_t j = 0;
  if (count >= lanes) {
    auto most = hn::LoadU(tag, x);
    for (j = lanes; j + lanes <= count; j += lanes)
      most = hn::Max(most, hn::LoadU(tag, x + j));
    largest = hn::GetLane(hn::MaxOfLanes(tag, most));
  }
  for (; j < count; ++j) largest = std::max(largest, x[j]);
  return largest;
}

/// The sum of e^(x_j - largest); with `to`, each of them there.
template <class T>
T exponentials(const T* HWY_RESTRICT x, int64_t count, T largest, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> tag;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto sums = hn::Zero(tag);
  int64_t j = 0;
  const auto power = [&](auto width) HWY_ATTR {
    const auto y = exp_of_negative(
        width, hn::Sub(hn::LoadU(width, x + j), hn::Set(width, largest)));
    if (to) hn::StoreU(y, width, to + j);
    return y;
  };
  for (; j + lanes <= count; j += lanes) sums = hn::Add(sums, power(tag));
  T sum = hn::GetLane(hn::SumOfLanes(tag, sums));
  for (; j < count; ++j) sum += hn::GetLane(power(one));
  return sum;
}

template <class T>
void scale(T* HWY_RESTRICT x, int64_t count, T factor) {
  each_vector<T>(count, [&](auto tag, int64_t j) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(tag, x + j), hn::Set(tag, factor)), tag, x + j);
  });
}

template <class T>
int64_t loss_of(MatView<const T> x, const int64_t* target, T* loss,
                MatView<T> gradient) noexcept {
  int64_t right = 0;
  for (int64_t i = 0; i < x.rows; ++i) {
    T* const to = gradient.data ? gradient.row(i) : nullptr;
    if (target[i] < 0) {
      loss[i] = T{0};
      if (to) std::fill_n(to, x.cols, T{0});
      continue;
    }
    const T* const row = x.row(i);
    const T largest = largest_of(row, x.cols);
    const T sum = exponentials(row, x.cols, largest, to);
    loss[i] = std::log(sum) + (largest - row[target[i]]);
    right += row[target[i]] == largest &&
             std::find(row, row + target[i], largest) == row + target[i];
    if (!to) continue;
    scale(to, x.cols, T{1} / sum);
    to[target[i]] -= T{1};
  }
  return right;
}

template <class T>
constexpr Kernels<softmax_loss<T>> kKernels = {{loss_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

template <class T>
int64_t softmax_loss(MatView<const T> x, const int64_t* target, T* loss,
                     MatView<T> gradient) noexcept {
  return chosen<T, softmax_loss<T>>(x, target, loss, gradient);
}

LAGWISE_INSTANTIATE(softmax_loss)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
