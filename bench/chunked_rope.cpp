#include "bench/chunked_rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "lagwise/encodings/head_decay.h"

namespace lagwise::bench {

using at::Tensor;

ChunkedRope::ChunkedRope(int64_t n, int64_t heads, int64_t dim, at::ScalarType type)
    : rows_(std::min(n, kRowsOfChunk)),
      chunks_(n / rows_),
      heads_(heads),
      dim_(dim),
      past_(at::ones({rows_, rows_}, type).tril()) {
  const Tensor log_factor = head_decay("alibi", heads, 0, 1);  // [H]
  const Tensor frequency =
      at::pow(10000.0, at::arange(dim / 2, at::kDouble) * (-2.0 / double(dim)));
  const Tensor angle = (at::arange(n, at::kDouble).unsqueeze(1) * frequency)
                           .view({chunks_, rows_, dim / 2});
  // From the middle of a chunk, which keeps both powers near 1.
  const Tensor row = at::arange(rows_, at::kDouble) - double(rows_ / 2);
  const Tensor log_fade = log_factor.view({heads, 1, 1, 1}) * row.view({rows_, 1});
  const auto table = [&](const Tensor& fade) {
    return at::complex(fade * angle.cos(), fade * angle.sin())
        .to(at::toComplexType(type))
        .contiguous();
  };
  q_table_ = table(log_fade.exp());
  k_table_ = table((-log_fade).exp());
  chunk_fade_ = (log_factor * double(rows_)).exp().view({heads, 1, 1}).to(type);
}

/// x [B, chunks, rows, H, D] -> [B H chunks, rows, D]. Coordinates 2j and 2j+1 are one
/// complex number, so that a rotation is one product. The table comes first: a result
/// has the memory order of the first operand, here that in which bmm needs it, and no
/// copy follows.
Tensor ChunkedRope::rotate(const Tensor& x, const Tensor& table) const {
  const Tensor pairs =
      at::view_as_complex(x.permute({0, 3, 1, 2, 4}).unflatten(-1, {dim_ / 2, 2}));
  return at::view_as_real(at::mul(table, pairs)).view({-1, rows_, dim_});
}

/// What chunks add to the state [B, H, chunks, D, E] -> the state before each. A loop:
/// a triangular product over chunks takes as long for 8 of them and longer for more.
Tensor ChunkedRope::states_before(const Tensor& written) const {
  const std::vector<Tensor> by_chunk = written.unbind(2);
  std::vector<Tensor> states = {at::zeros(by_chunk[0].sizes(), written.options())};
  for (size_t a = 0; a + 1 < by_chunk.size(); ++a)
    states.push_back((states.back() + by_chunk[a]).mul_(chunk_fade_));
  return at::stack(states, 2);
}

Tensor ChunkedRope::attend(const Tensor& qkv) const {
  // unbind, because its gradient is one copy; that of three slices would be three
  // tensors of zeros and their sum.
  const std::vector<Tensor> x =
      qkv.view({-1, chunks_, rows_, 3, heads_, dim_}).unbind(3);
  const Tensor q = rotate(x[0], q_table_), k = rotate(x[1], k_table_);
  const Tensor v = x[2].permute({0, 3, 1, 2, 4}).reshape({-1, rows_, dim_});
  const Tensor keys = k.transpose(1, 2);
  const Tensor scores = at::bmm(q, keys).mul_(past_);  // tril takes four times as long
  Tensor out;
  if (chunks_ == 1) {
    out = at::bmm(scores, v);
  } else {
    const Tensor written =
        at::bmm(keys, v).view({-1, heads_, chunks_, dim_, dim_});  // [.., D, E]
    const Tensor before = states_before(written).view({-1, dim_, dim_});
    out = at::baddbmm(at::bmm(q, before), scores, v);
  }
  return out.view({-1, heads_, length(), dim_}).transpose(1, 2);
}

}  // namespace lagwise::bench
