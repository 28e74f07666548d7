#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lagwise/ops/exact/exact_call.h"
#include "lagwise/ops/exact/exact_waves.h"
#include "lagwise/ops/parallel/heads.h"

namespace lagwise::ops {
namespace {

using kernels::kExactKeys;

/// Some keys of one piece: the unit of work a thread takes. Gradients that several
/// strips share are computed apart and added in the order of the strips.
struct KeyStrip {
  size_t piece;
  int64_t begin, end;
  bool alone;             // the piece has no other strip
  at::Tensor q;           // [N, D]  unless alone
  at::Tensor lag_bias;    // [L, 1]
  at::Tensor lag_keys;    // [L, D]
  at::Tensor lag_values;  // [L, E]
};

/// How many strips to cut the keys of a piece into. It must not depend on the number of
/// threads, because that would change the order of the sums and so the last bits.
int64_t strips_of(const ExactCall& call, const ExactPiece& piece) {
  constexpr int64_t kEnough = 8;
  const auto pieces = static_cast<int64_t>(call.pieces.size());
  const int64_t tiles = (piece.keys + kExactKeys - 1) / kExactKeys;
  return std::clamp<int64_t>((kEnough + pieces - 1) / pieces, 1, tiles);
}

template <class T>
class Backward {
 public:
  Backward(const ExactCall& call, const ExactForward& saved, const at::Tensor& d_out,
           const ExactGradient& to)
      : call_(call), saved_(saved), d_out_(d_out.contiguous()), to_(to) {}

  void run() {
    std::vector<int64_t> sizes;
    for (const ExactPiece& piece : call_.pieces)
      sizes.push_back(kernels::exact_gradient_packed(head_of<T>(call_, piece)));
    const auto waves = waves_of(sizes, sizeof(T));
    for (size_t w = 0; w + 1 < waves.size(); ++w)
      run_wave(waves[w], waves[w + 1], sizes);
  }

 private:
  MatView<const T> rows(const at::Tensor& x, const ExactPiece& piece) const {
    return rows_of<const T>(x, piece, piece.row, piece.rows);
  }

  void run_wave(size_t begin, size_t end, const std::vector<int64_t>& sizes) {
    std::vector<int64_t> offset;
    std::vector<KeyStrip> strips;
    int64_t used = 0, scratch = 0;
    for (size_t i = begin; i < end; ++i) {
      offset.push_back(used), used += sizes[i];
      scratch = std::max(scratch, cut(i, strips));
    }
    if (!space_.defined() || space_.numel() < used)
      space_ = at::empty({used}, call_.q.options());
    const auto packed = [&](size_t i) {
      return space_.data_ptr<T>() + offset[i - begin];
    };
    for_each_task<T>(static_cast<int64_t>(offset.size()), 0, [&](int64_t task, T*) {
      const size_t i = begin + static_cast<size_t>(task);
      const ExactPiece& piece = call_.pieces[i];
      kernels::exact_gradient_pack<T>(head_of<T>(call_, piece), rows(saved_.out, piece),
                                      rows(d_out_, piece), packed(i));
    });
    for_each_task<T>(static_cast<int64_t>(strips.size()), scratch,
                     [&](int64_t task, T* own) {
                       const KeyStrip& strip = strips[static_cast<size_t>(task)];
                       differentiate(strip, packed(strip.piece), own);
                     });
    for (const KeyStrip& strip : strips) gather(strip);
  }

  /// Appends the strips of piece i; returns the scratch that one needs.
  int64_t cut(size_t i, std::vector<KeyStrip>& strips) const {
    const ExactPiece& piece = call_.pieces[i];
    const int64_t count = strips_of(call_, piece), lags = piece.rows + piece.keys - 1;
    const int64_t tiles = (piece.keys + kExactKeys - 1) / kExactKeys;
    int64_t most = 0;
    const auto part = [&](const at::Tensor& like, int64_t length) {
      if (!like.defined()) return like;
      return at::empty({length, like.size(-1)}, call_.q.options());
    };
    for (int64_t s = 0; s < count; ++s) {
      const int64_t first = tiles * s / count * kExactKeys;
      const int64_t last = std::min(tiles * (s + 1) / count * kExactKeys, piece.keys);
      most = std::max(most, last - first);
      strips.push_back({i, first, last, count == 1,
                        count == 1 ? at::Tensor() : part(call_.q, piece.rows),
                        part(to_.lag_bias, lags), part(to_.lag_keys, lags),
                        part(to_.lag_values, lags)});
    }
    return kernels::exact_gradient_scratch(head_of<T>(call_, piece), most);
  }

  void differentiate(const KeyStrip& strip, const T* packed, T* own) const {
    const ExactPiece& piece = call_.pieces[strip.piece];
    const auto view = [](const at::Tensor& x) -> MatView<T> {
      if (!x.defined()) return {};
      return {x.data_ptr<T>(), x.size(0), x.size(1), x.size(1), 1};
    };
    kernels::exact_gradient<T>(
        head_of<T>(call_, piece), rows(d_out_, piece), rows(saved_.stats, piece),
        packed, strip.begin, strip.end,
        {strip.alone ? rows_of<T>(to_.q, piece, piece.row, piece.rows) : view(strip.q),
         rows_of<T>(to_.k, piece, piece.key, piece.keys),
         rows_of<T>(to_.v, piece, piece.key, piece.keys), view(strip.lag_bias),
         view(strip.lag_keys), view(strip.lag_values),
         to_.key_bias.defined() ? rows_of<T>(to_.key_bias, piece, piece.key, piece.keys)
                                : MatView<T>{}},
        own);
  }

  /// Adds what a strip computed apart. Called in order, so the sums have one order.
  void gather(const KeyStrip& strip) const {
    const ExactPiece& piece = call_.pieces[strip.piece];
    if (!strip.alone)
      to_.q[piece.batch][piece.head].narrow(0, piece.row, piece.rows).add_(strip.q);
    const auto add = [&](const at::Tensor& table, const at::Tensor& part) {
      if (!table.defined()) return;
      table[table.size(0) == 1 ? 0 : piece.head]
          .narrow(0, piece.first_lag, part.size(0))
          .add_(part);
    };
    add(to_.lag_bias, strip.lag_bias);
    add(to_.lag_keys, strip.lag_keys);
    add(to_.lag_values, strip.lag_values);
  }

  const ExactCall& call_;
  const ExactForward& saved_;
  const at::Tensor d_out_;
  const ExactGradient& to_;
  at::Tensor space_;
};

}  // namespace

ExactGradient exact_backward_cpu(const ExactCall& call, const ExactForward& saved,
                                 const at::Tensor& d_out, const ExactWanted& wanted) {
  const auto zeros = [&](const at::Tensor& x, bool want) {
    return want && x.defined() ? at::zeros(x.sizes(), x.options()) : at::Tensor();
  };
  ExactGradient to{zeros(call.q, true),
                   zeros(call.k, true),
                   zeros(call.v, true),
                   zeros(call.lag_bias, wanted.lag_bias),
                   zeros(call.lag_keys, wanted.lag_keys),
                   zeros(call.lag_values, wanted.lag_values),
                   zeros(call.key_bias, wanted.key_bias)};
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "exact_attention",
                             [&] { Backward<scalar_t>(call, saved, d_out, to).run(); });
  for (at::Tensor* bias : {&to.lag_bias, &to.key_bias})
    if (bias->defined()) *bias = bias->squeeze(-1);
  return to;
}

}  // namespace lagwise::ops
