#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "lagwise/kernels/decay_gradient.h"
#include "lagwise/kernels/denominator_gradient.h"
#include "lagwise/kernels/key_value_gradient.h"
#include "lagwise/ops/linear_cpu.h"
#include "lagwise/ops/linear_views.h"

namespace lagwise::ops {
namespace {

using kernels::Rows;
using kernels::Sink;
using Divide = LinearCall::Divide;
using DecayBy = LinearCall::DecayBy;

/// One pair of features that meets in products q_i . k_j: the queries and keys
/// themselves, or the norm features of a separate denominator. What the products
/// weigh is [v_j | 1]: the values where there are any, and the 1 that sums up a
/// denominator; against it stands [d_out_i / den_i | d_den_i].
struct Pair {
  at::Tensor q, k, d_q, d_k;  // [B, H, N, D], [B, H, M, D]
  at::Tensor v, d_v, d_out;   // undefined: no values
  at::Tensor inverse, d_den;  // [B, H, N]; undefined: no denominator
  at::Tensor s0, s1, d_s1;    // state before the first and after the last key, and
  at::Tensor z0, z1, d_z1;    //   the gradient of the latter; undefined: zero
  at::Tensor d_s0, d_z0;      // to be filled
  at::Tensor d_decay;         // [B, H, D] f64, zeros to add to; undefined: not asked

  int64_t value_width() const { return v.defined() ? v.size(3) : 0; }
  int64_t width() const { return value_width() + (d_den.defined() ? 1 : 0); }
};

template <class T>
class Backward {
 public:
  Backward(const LinearCall& call, const at::Tensor& decay, const Pair& pair)
      : call_(call),
        decay_(decay),
        pair_(pair),
        d_(pair.q.size(3)),
        width_(pair.width()),
        state_size_(width_ * d_) {}

  /// `prepare(head)` goes through the division of one head, before its passes.
  template <class Prepare>
  void run(const Prepare& prepare) {
    const bool whole = fused() || (strips_per_head(heads(), d_) == 1 &&
                                   strips_per_head(heads(), pair_.value_width()) == 1);
    if (call_.causal && pair_.d_s1.defined()) pair_.d_s0.copy_(pair_.d_s1);
    if (call_.causal && whole) return run_head_by_head(prepare);
    at::parallel_for(0, heads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) prepare(head);
    });
    call_.causal ? run_in_strips() : run_full();
  }

 private:
  int64_t heads() const { return call_.b * call_.h; }

  /// Whether dk and dv come from one pass. It saves a sixth but cannot be cut into
  /// strips, so few heads go without. The choice decides over bits: it must not look
  /// at the number of threads.
  bool fused() const {
    constexpr int64_t kEnoughHeads = 4;
    return call_.causal && pair_.v.defined() && heads() >= kEnoughHeads &&
           call_.decay_by != DecayBy::channel;
  }
  MatView<const T> ones() const { return {&one_, call_.m, 1, 0, 1}; }

  Rows<T> gradient(int64_t head) const {
    MatView<const T> x{nullptr, call_.n, 0, 0, 1};
    if (pair_.d_out.defined()) x = head_view<const T>(pair_.d_out, head);
    return {x,
            {},
            head_column<const T>(pair_.inverse, head),
            head_column<const T>(pair_.d_den, head)};
  }
  Rows<T> values(int64_t head) const {
    MatView<const T> x{nullptr, call_.m, 0, 0, 1};
    if (pair_.v.defined()) x = head_view<const T>(pair_.v, head);
    return {x, {}, {}, pair_.d_den.defined() ? ones() : MatView<const T>{}};
  }
  Rows<T> queries(int64_t head) const {
    return {head_view<const T>(pair_.q, head), call_.map};
  }
  Rows<T> keys(int64_t head) const {
    return {head_view<const T>(pair_.k, head), call_.map};
  }

  static Rows<T> reversed(const Rows<T>& x) {
    return {x.x.reversed(), x.map, x.scale.reversed(), x.extra.reversed()};
  }
  static Rows<T> columns(const Rows<T>& x, Strip strip) {
    return {x.x.columns(strip.begin, strip.end), x.map, x.scale, {}};
  }

  /// Gradients of features on their way to gradients of what was mapped.
  Sink<T> sink(const at::Tensor& to, const at::Tensor& at, Strip strip) const {
    const auto cut = [&](auto view) { return view.columns(strip.begin, strip.end); };
    Sink<T> sink{cut(head_view<T>(to, strip.head))};
    if (call_.map.kind == kernels::FeatureMap::Kind::none) return sink;
    sink.at = cut(head_view<const T>(at, strip.head));
    sink.map = call_.map;
    return sink;
  }
  Sink<T> query_sink(Strip strip) const { return sink(pair_.d_q, pair_.q, strip); }
  Sink<T> key_sink(Strip strip) const { return sink(pair_.d_k, pair_.k, strip); }

  /// to [rows, strip] = [s^T | z].
  void fill(const at::Tensor& s, const at::Tensor& z, Strip strip,
            MatView<T> to) const {
    const auto from = head_view<const T>(s, strip.head);
    const auto last = head_column<const T>(z, strip.head);
    for (int64_t d = 0; d < to.cols; ++d) {
      const int64_t at = strip.begin + d;
      for (int64_t e = 0; e < pair_.value_width(); ++e)
        to(e, d) = from.data ? from(at, e) : T{0};
      if (pair_.d_den.defined()) to(width_ - 1, d) = last.data ? last(at, 0) : T{0};
    }
  }

  /// The factor of channel d between the given state and the first row.
  T first_factor(int64_t head, int64_t d) const {
    if (call_.decay_by == DecayBy::none || call_.n == 0) return T{1};
    const auto log = key_decay<T>(call_, decay_, head).log_factor;
    return std::exp(log(0, call_.decay_by == DecayBy::head ? 0 : d));
  }

  int64_t scratch() const {
    const int64_t values = pair_.value_width();
    return std::max({kernels::linear_scratch<T>(width_, d_),
                     kernels::linear_scratch<T>(d_, values),
                     fused() ? kernels::key_value_gradient_scratch<T>(d_, values) : 0});
  }

  // dq_i = sum_{j <= i} g^(i-j) ([d_out_i | d_den_i] . [v_j | 1]) k_j
  void query_pass(Strip strip, T* own) const {
    const MatView<T> state{own + scratch(), width_, strip.end - strip.begin,
                           strip.end - strip.begin, 1};
    fill(pair_.s0, pair_.z0, strip, state);
    kernels::causal_linear<T>(
        gradient(strip.head), values(strip.head), columns(keys(strip.head), strip),
        column_decay<T>(call_, decay_, strip, true), {}, state, query_sink(strip), own);
  }

  // dk_j = sum_{i >= j} g^(i-j) ([v_j | 1] . [d_out_i | d_den_i]) q_i
  void key_pass(Strip strip, T* own) const {
    const MatView<T> state{own + scratch(), width_, strip.end - strip.begin,
                           strip.end - strip.begin, 1};
    fill(pair_.d_s1, pair_.d_z1, strip, state);
    Sink<T> sink = key_sink(strip);
    sink.out = sink.out.reversed(), sink.at = sink.at.reversed();
    kernels::causal_linear<T>(
        reversed(values(strip.head)), reversed(gradient(strip.head)),
        columns(reversed(queries(strip.head)), strip),
        column_decay<T>(call_, decay_, strip, false), {}, state, sink, own);
    if (!pair_.d_den.defined()) return;
    const auto d_z0 = head_column<T>(pair_.d_z0, strip.head);
    for (int64_t d = strip.begin; d < strip.end; ++d)
      d_z0(d, 0) = first_factor(strip.head, d) * state(width_ - 1, d - strip.begin);
  }

  // dv_j = sum_{i >= j} g^(i-j) (k_j . q_i) d_out_i / den_i
  void value_pass(Strip strip, T* own) const {
    const auto cut = [&](auto view) { return view.columns(strip.begin, strip.end); };
    const MatView<T> state = cut(head_view<T>(pair_.d_s0, strip.head));  // holds d_s1
    const auto decay = key_decay<T>(call_, decay_, strip.head, false);
    kernels::causal_linear<T>(
        reversed(keys(strip.head)), reversed(queries(strip.head)),
        columns(reversed(gradient(strip.head)), strip), decay, {}, state,
        {cut(head_view<T>(pair_.d_v, strip.head)).reversed()}, own);
    fade_to_first(strip.head, state);
  }

  /// From R_0, which stands at the first row, to the gradient of the given state.
  void fade_to_first(int64_t head, MatView<T> state) const {
    for (int64_t d = 0; d < state.rows; ++d) {
      const T factor = first_factor(head, d);
      for (int64_t e = 0; e < state.cols; ++e) state(d, e) *= factor;
    }
  }

  /// key_pass and value_pass of a whole head at once.
  void key_value_pass(int64_t head, T* own) const {
    const Strip all{head, 0, d_};
    const MatView<T> state = head_view<T>(pair_.d_s0, head);  // holds d_s1
    MatView<T> r{};
    if (pair_.d_den.defined()) {
      r = head_column<T>(pair_.d_z0, head);
      const auto last = head_column<const T>(pair_.d_z1, head);
      for (int64_t d = 0; d < d_; ++d) r(d, 0) = last.data ? last(d, 0) : T{0};
    }
    Sink<T> sink = key_sink(all);
    sink.out = sink.out.reversed(), sink.at = sink.at.reversed();
    kernels::key_value_gradient<T>(
        reversed(queries(head)), reversed(gradient(head)), reversed(keys(head)),
        reversed(values(head)), key_decay<T>(call_, decay_, head, false), state, r.data,
        sink, {head_view<T>(pair_.d_v, head).reversed()}, own);
    fade_to_first(head, state);
    if (r.data) fade_to_first(head, r);
  }

  // d_decay_d = sum_i q_id (dS_i / dlog g_d) [d_out_i | d_den_i] + <dS_N / dlog g_d,
  // d_s1>
  void decay_pass(Strip strip, T* own) const {
    const int64_t cols = strip.end - strip.begin;
    T* const space = own + kernels::decay_gradient_scratch<T>(width_, cols);
    const MatView<T> state{space, width_, cols, cols, 1};
    const MatView<T> slope{space + width_ * cols, width_, cols, cols, 1};
    const MatView<T> d_state{space + 2 * width_ * cols, width_, cols, cols, 1};
    fill(pair_.s0, pair_.z0, strip, state);
    std::fill_n(slope.data, width_ * cols, T{0});
    auto factors = column_decay<T>(call_, decay_, strip, true).log_factor;
    if (call_.decay_by == DecayBy::head) factors = {factors.data, 1, cols, 0, 0};
    double* const moment =
        pair_.d_decay.template data_ptr<double>() + strip.head * d_ + strip.begin;
    kernels::decay_gradient<T>(gradient(strip.head), values(strip.head),
                               columns(keys(strip.head), strip), factors, state, slope,
                               columns(queries(strip.head), strip).x, call_.map, moment,
                               own);
    fill(pair_.d_s1, pair_.d_z1, strip, d_state);
    for (int64_t e = 0; e < width_; ++e)
      for (int64_t d = 0; d < cols; ++d)
        moment[d] +=
            static_cast<double>(slope(e, d)) * static_cast<double>(d_state(e, d));
  }

  template <class Pass>
  void over(int64_t columns, const Pass& pass) {
    for_each_strip<T>(heads(), columns, scratch() + state_size_, pass);
  }

  /// All passes of a head after each other: its rows stay in the cache.
  template <class Prepare>
  void run_head_by_head(const Prepare& prepare) {
    over(0, [&](Strip strip, T* own) {
      const Strip all{strip.head, 0, d_};
      prepare(all.head);
      query_pass(all, own);
      if (fused()) return key_value_pass(all.head, own);
      key_pass(all, own);
      if (pair_.v.defined()) value_pass({all.head, 0, pair_.value_width()}, own);
    });
    run_decay();
  }

  /// Few heads: each pass shares out its columns.
  void run_in_strips() {
    over(d_, [&](Strip strip, T* own) { query_pass(strip, own); });
    over(d_, [&](Strip strip, T* own) { key_pass(strip, own); });
    if (pair_.v.defined())
      over(pair_.value_width(), [&](Strip strip, T* own) { value_pass(strip, own); });
    run_decay();
  }

  void run_decay() {
    if (!pair_.d_decay.defined()) return;
    const int64_t numbers =
        kernels::decay_gradient_scratch<T>(width_, d_) + 3 * state_size_;
    for_each_strip<T>(heads(), d_, numbers,
                      [&](Strip strip, T* own) { decay_pass(strip, own); });
  }

  // With every key visible, sums over queries and sums over keys come apart:
  //   r = [d_s1^T | d_z1] + sum_i [d_out_i / den_i | d_den_i]^T q_i      [E + 1, D]
  //   dq_i = [d_out_i / den_i | d_den_i] [s1^T | z1],  dk_j = [v_j | 1] r,
  //   dv_j = k_j r^T without its last column
  void run_full() {
    const at::Tensor r = at::empty({call_.b, call_.h, width_, d_}, pair_.q.options());
    over(d_, [&](Strip strip, T* own) {
      const auto cut = [&](auto view) { return view.columns(strip.begin, strip.end); };
      const MatView<T> sum = cut(head_view<T>(r, strip.head));
      fill(pair_.d_s1, pair_.d_z1, strip, sum);
      kernels::absorb<T>(gradient(strip.head), columns(queries(strip.head), strip), sum,
                         nullptr, own);
      kernels::read_state<T>(values(strip.head), {}, sum, key_sink(strip), own);
      const MatView<T> state{own + scratch(), width_, sum.cols, sum.cols, 1};
      fill(pair_.s1, pair_.z1, strip, state);
      kernels::read_state<T>(gradient(strip.head), {}, state, query_sink(strip), own);
    });
    if (pair_.d_den.defined()) pair_.d_z0.copy_(r.select(2, width_ - 1));
    if (!pair_.v.defined()) return;
    pair_.d_s0.copy_(r.slice(2, 0, pair_.value_width()).transpose(2, 3));
    over(pair_.value_width(), [&](Strip strip, T* own) {
      const auto cut = [&](auto view) { return view.columns(strip.begin, strip.end); };
      kernels::read_state<T>(keys(strip.head), {},
                             cut(head_view<T>(pair_.d_s0, strip.head)),
                             {cut(head_view<T>(pair_.d_v, strip.head))}, own);
    });
  }

  const LinearCall& call_;
  const at::Tensor& decay_;
  Pair pair_;
  int64_t d_, width_, state_size_;  // widths, and the numbers of one transposed state
  T one_ = 1;
};

/// Through the division of one head: fills inverse and d_den of the pairs.
template <class T>
void through_division(const LinearCall& call, const LinearForward& saved,
                      const at::Tensor& d_out, const at::Tensor& inverse,
                      const at::Tensor& d_den, int64_t head) {
  const T floor =
      call.clamp ? static_cast<T>(call.eps) : -std::numeric_limits<T>::infinity();
  kernels::denominator_gradient<T>(
      head_view<const T>(d_out, head), head_view<const T>(saved.out, head),
      head_column<const T>(saved.den, head), floor, head_column<T>(inverse, head),
      head_column<T>(d_den, head));
}

/// The gradient of the decay in its own shape, [H] or [H, D].
at::Tensor decay_gradient(const LinearCall& call, const Pair& pair) {
  const at::Tensor& sum = pair.d_decay;
  return call.decay_by == DecayBy::channel ? sum.sum(0)
                                           : sum.sum(at::IntArrayRef{0, 2});
}

}  // namespace

LinearGradients linear_backward_cpu(const LinearCall& call, const LinearForward& saved,
                                    const LinearCotangents& cotangents) {
  const auto options = call.q.options();
  const auto like = [&](const at::Tensor& x) { return at::empty(x.sizes(), options); };
  const bool divides = call.divide != Divide::none;
  const bool separate = call.divide == Divide::separate;
  const at::Tensor d_out = cotangents.out.defined()
                               ? cotangents.out
                               : at::zeros({1}, options).expand(saved.out.sizes());

  Pair main;
  main.q = call.q, main.d_q = like(call.q);
  main.k = call.k, main.d_k = like(call.k);
  main.v = call.v, main.d_v = like(call.v), main.d_out = d_out;
  main.s0 = call.s, main.s1 = saved.s, main.d_s1 = cotangents.s;
  main.d_s0 = at::zeros(saved.s.sizes(), options);
  Pair norm;
  Pair& divisor = separate ? norm : main;
  if (separate) {
    norm.q = call.q_norm, norm.d_q = like(call.q_norm);
    norm.k = call.k_norm, norm.d_k = like(call.k_norm);
  }
  if (divides) {
    main.inverse = like(saved.den);
    divisor.d_den = like(saved.den);
    divisor.z0 = call.z, divisor.z1 = saved.z, divisor.d_z1 = cotangents.z;
  }
  divisor.d_z0 = at::zeros(saved.z.sizes(), options);
  if (cotangents.decay) {
    main.d_decay = at::zeros({call.b, call.h, call.d}, at::kDouble);
    if (separate) norm.d_decay = at::zeros({call.b, call.h, call.f}, at::kDouble);
  }

  const at::Tensor decay = call.decay.defined() ? call.decay.contiguous() : call.decay;
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "linear_attention", [&] {
    Backward<scalar_t>(call, decay, main).run([&](int64_t head) {
      if (divides)
        through_division<scalar_t>(call, saved, d_out, main.inverse, divisor.d_den,
                                   head);
    });
    if (separate) Backward<scalar_t>(call, decay, norm).run([](int64_t) {});
  });

  LinearGradients to;
  to.q = main.d_q, to.k = main.d_k, to.v = main.d_v;
  to.q_norm = norm.d_q, to.k_norm = norm.d_k;
  to.s = main.d_s0, to.z = divisor.d_z0;
  if (cotangents.decay) {
    to.decay = decay_gradient(call, main);
    if (separate) to.decay = to.decay + decay_gradient(call, norm);
    to.decay = to.decay.to(call.q.scalar_type());
  }
  return to;
}

}  // namespace lagwise::ops
