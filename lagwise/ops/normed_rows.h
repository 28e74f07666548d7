#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "lagwise/core/mat_view.h"
#include "lagwise/kernels/add_rows.h"
#include "lagwise/kernels/bf16_numbers.h"
#include "lagwise/kernels/rms_norm.h"
#include "lagwise/ops/dense_passes.h"

namespace lagwise::ops {

/// Numbers between two products, whose factors are of type T and whose sums are of
/// another (bf16 and f32), or of the same. `kept` is a place for numbers as factors.
template <class T>
class Between {
 public:
  using Sum = SumOf<T>;
  explicit Between(int64_t most)
      : sums_(std::make_unique_for_overwrite<Sum[]>(static_cast<size_t>(most))) {
    if constexpr (kRounds)
      factors_ = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(most));
  }
  Sum* sums() const { return sums_.get(); }

  /// Where to put sums that `keep` will round to `kept`.
  Sum* room_for(T* kept) const {
    if constexpr (kRounds)
      return sums();
    else
      return kept;
  }
  void keep(int64_t count, T* kept) const {
    if constexpr (kRounds) kernels::round_to_bf16(sums(), count, bits(kept));
  }
  /// What was kept, as sums.
  const Sum* again(const T* kept, int64_t count) const {
    if constexpr (!kRounds)
      return kept;
    else
      return kernels::widen_bf16(bits(kept), count, sums()), sums();
  }
  /// The first so many of sums(), as factors.
  const T* factors(int64_t count) const { return rounded(sums(), count); }
  /// Others as factors: themselves, or copies.
  const T* rounded(const Sum* from, int64_t count) const {
    if constexpr (!kRounds)
      return from;
    else
      return kernels::round_to_bf16(from, count, bits(factors_.get())), factors_.get();
  }

 private:
  static constexpr bool kRounds = !std::is_same_v<T, Sum>;
  static uint16_t* bits(T* x) { return reinterpret_cast<uint16_t*>(x); }
  static const uint16_t* bits(const T* x) {
    return reinterpret_cast<const uint16_t*>(x);
  }

  std::unique_ptr<Sum[]> sums_;
  std::unique_ptr<T[]> factors_;
};

/// The rows that dense layers multiply: x [rows, I], dense, normed first if there is a
/// gain: whole, or part by part. They are made a block at a time, while the block is in the cache, and nowhere
/// kept; so are their gradients.
template <class T>
class NormedRows {
 public:
  using Sum = SumOf<T>;
  NormedRows(const at::Tensor& x, const InputNorm& norm, int64_t most_rows)
      : x_(matrix_view<const Sum>(x)),
        norm_(norm),
        rows_(norm.gain.defined() || !std::is_same_v<T, Sum> ? most_rows * x_.cols : 0),
        parts_(norm.gain.defined() && norm.gain.dim() == 2 ? norm.gain.size(0) : 1),
        inverse_(std::make_unique_for_overwrite<Sum[]>(
            static_cast<size_t>(norm.gain.defined() ? most_rows * parts_ : 0))) {}

  /// Rows [begin, end), until the next block is asked for.
  MatView<const T> block(int64_t begin, int64_t end) const {
    const MatView<const Sum> x = x_.slice(begin, end);
    const int64_t count = x.rows * x.cols;
    if (!norm_.gain.defined())
      return {rows_.rounded(x.data, count), x.rows, x.cols, x.cols, 1};
    kernels::rms_norm<Sum>(parts(x), gain(), norm_.eps,
                           parts(MatView<Sum>{rows_.sums(), x.rows, x.cols, x.cols, 1}),
                           inverse_.get());
    return {rows_.factors(count), x.rows, x.cols, x.cols, 1};
  }

  /// The gradient of x, dx [rows, I], from that of this block, d [end - begin, I], and
  /// from what else x gets, `past` [rows, I] or undefined. Adds to the gradient of the
  /// gain, gain_sum.
  void block_gradient(int64_t begin, int64_t end, const Sum* d, const at::Tensor& past,
                      const at::Tensor& dx, Sum* gain_sum) const {
    const MatView<const Sum> x = x_.slice(begin, end);
    const MatView<const Sum> from{d, x.rows, x.cols, x.cols, 1};
    const MatView<Sum> to = matrix_view<Sum>(dx).slice(begin, end);
    MatView<const Sum> start{};
    if (past.defined()) start = matrix_view<const Sum>(past).slice(begin, end);
    if (norm_.gain.defined())
      return kernels::rms_norm_gradient<Sum>(
          parts(x), gain(), inverse_.get(), parts(from), parts(start), parts(to),
          parts(MatView<Sum>{gain_sum, 1, x.cols, x.cols, 1}));
    std::copy_n(d, x.rows * x.cols, to.data);
    kernels::add_rows<Sum>(start, nullptr, to);
  }

 private:
  MatView<const Sum> gain() const {
    return parts(
        MatView<const Sum>{norm_.gain.data_ptr<Sum>(), 1, x_.cols, x_.cols, 1});
  }
  /// Dense rows, each part a row of its own.
  template <class U>
  MatView<U> parts(MatView<U> x) const {
    const int64_t width = x.cols / parts_;
    return {x.data, x.rows * parts_, width, width, 1};
  }

  MatView<const Sum> x_;
  const InputNorm& norm_;
  Between<T> rows_;
  int64_t parts_;
  std::unique_ptr<Sum[]> inverse_;  // of the block: r of kernels/rms_norm.h
};

}  // namespace lagwise::ops
