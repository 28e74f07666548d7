// T5: a learned bias per bucket of distances and head, one table for all layers.
//
//     score(i, j) = q_i . k_j + weight[bucket(lag)][h]        (no 1 / sqrt(D))
//     causal:  x = max(lag, 0), n = buckets;  full: x = |lag|, n = buckets / 2, and
//              keys ahead (lag < 0) take the upper half of the table
//     bucket(x) = x for x < n/2, else min(n - 1, n/2 + floor((n - n/2)
//                 ln(x / (n/2)) / ln(max_distance / (n/2))))
//
// Shapes      lag_bias [H, N+M-1].
// Parameters  shared: "weight" [buckets, H], normal with deviation
//             1 / sqrt(model width).
// Options     buckets (32), max_distance (128): lags beyond share the last bucket.
// Paper       Raffel et al., "Exploring the Limits of Transfer Learning", JMLR 2020.
//             https://arxiv.org/abs/1910.10683
// Note        Causal and full buckets agree for short lags: test beyond.

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/lags.h"

namespace lagwise {
namespace {

struct Buckets {
  int64_t count, farthest;

  int64_t of(int64_t lag, bool causal) const {
    const int64_t n = causal ? count : count / 2, half = n / 2;
    const int64_t first = !causal && lag < 0 ? n : 0;
    const int64_t x = causal ? std::max<int64_t>(lag, 0) : std::abs(lag);
    if (x < half) return first + x;
    const double far =
        std::log(double(x) / double(half)) / std::log(double(farthest) / double(half));
    return first + std::min(n - 1, half + static_cast<int64_t>(far * double(n - half)));
  }
};

class T5 : public Encoding {
 public:
  T5(const HeadShape& shape, const Buckets& buckets)
      : Encoding({.exact = true,
                  .linear_causal = true,
                  .linear_full = true,
                  .stage = Traits::Stage::score,
                  .by_lag = true},
                 shape),
        buckets_(buckets),
        weight_(drawn_normal(shape, 0, 0, {buckets.count, shape.heads},
                             inverse_root(shape.model_width()))) {}

  Parameters shared() override { return {{"weight", weight_}}; }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code&, const Layer&,
                 const Placement& at) override {
    refuse_positions("t5", at);
    at::Tensor index = lags_between(at, q.size(2), k.size(2));
    int64_t* entry = index.data_ptr<int64_t>();
    for (int64_t c = 0; c < index.numel(); ++c)
      entry[c] = buckets_.of(entry[c], at.causal);
    Encoded to{.q = q, .k = k, .scale = 1};
    to.lag_bias = weight_.to(q.scalar_type()).index_select(0, index).t();
    return to;
  }

 private:
  Buckets buckets_;
  at::Tensor weight_;  // [buckets, H]
};

const RegisterEncoding t5_registered({
    .name = "t5",
    .summary = "learned bias per logarithmic bucket of lags, shared by layers",
    .paper = "arXiv:1910.10683",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      const Buckets buckets{spec.take("buckets", 32), spec.take("max_distance", 128)};
      if (buckets.count < 4 || buckets.count % 2 != 0)
        throw std::invalid_argument("t5: expected buckets even and at least 4, got " +
                                    std::to_string(buckets.count));
      if (buckets.farthest <= buckets.count / 2)
        throw std::invalid_argument("t5: expected max_distance > buckets / 2 = " +
                                    std::to_string(buckets.count / 2) + ", got " +
                                    std::to_string(buckets.farthest));
      return std::make_unique<T5>(shape, buckets);
    },
});

}  // namespace
}  // namespace lagwise
