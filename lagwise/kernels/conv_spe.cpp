#include "lagwise/kernels/conv_spe.h"

// Highway compiles the rest of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lagwise/kernels/conv_spe.cpp"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"
#include "lagwise/kernels/conv_code-inl.h"
#include "lagwise/kernels/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lagwise::kernels::HWY_NAMESPACE {
namespace {

/// What forward and backward share: sizes, and the samples of a feature and panel.
template <class T>
struct Common {
  Common(const ConvProblem<T>& problem, Scratch<T>& scratch)
      : p(problem),
        width(panel_width<T>()),
        panels((problem.r + width - 1) / width),
        cells(problem.window.cells()),
        samples(scratch.take(problem.window.samples(0) * problem.window.samples(1) *
                             problem.window.samples(2) * width)) {}

  int64_t lanes_of(int64_t panel) const { return std::min(width, p.r - panel * width); }

  /// Draws them, or looks them up; given ones that lie side by side are not copied.
  Samples<T> noise(int64_t d, int64_t panel) const {
    const ConvWindow& w = p.window;
    const int64_t line = w.samples(2), plane = w.samples(1) * line;
    const Samples<T> own{samples, {plane * width, line * width, width}};
    if (p.noise.given != nullptr) return look_up(d, panel, own);
    const NoiseRow row = p.noise.row.later(d, panel * width);
    T* to = samples;
    for (int64_t i = w.origin[0]; i < w.origin[0] + w.samples(0); ++i)
      for (int64_t j = w.origin[1]; j < w.origin[1] + w.samples(1); ++j) {
        const int64_t at = i * p.noise.pitch[0] + j * p.noise.pitch[1] + w.origin[2];
        noise_panel<T>(row, p.noise.kind, at, line, width, to);
        to += line * width;
      }
    return own;
  }

  Samples<T> look_up(int64_t d, int64_t panel, const Samples<T>& own) const {
    const ConvNoise<T>& z = p.noise;
    const ConvWindow& w = p.window;
    const T* from = z.given + d * z.feature_step + panel * width * z.realisation_step;
    for (size_t i = 0; i < 3; ++i)
      from += (w.origin[i] - z.given_origin[i]) * z.step[i];
    const int64_t lanes = lanes_of(panel);
    if (z.realisation_step == 1 && lanes == width) return {from, z.step};
    T* to = samples;
    for (int64_t i = 0; i < w.samples(0); ++i)
      for (int64_t j = 0; j < w.samples(1); ++j)
        for (int64_t n = 0; n < w.samples(2); ++n, to += width) {
          const T* const at = from + i * z.step[0] + j * z.step[1] + n * z.step[2];
          for (int64_t l = 0; l < width; ++l)
            to[l] = l < lanes ? at[l * z.realisation_step] : T{0};
        }
    return own;
  }

  const ConvProblem<T>& p;
  int64_t width, panels, cells;
  T* samples;
};

/// Columns of all batch rows one after another, [D, B, cells]: a feature's numbers are
/// read once per panel, and in a row-major matrix each would be on a line of its own.
template <class T>
void pack_columns(const ConvRows<const T>& x, int64_t batch, int64_t cells, int64_t d,
                  T* to) {
  for (int64_t b = 0; b < batch; ++b) {
    const auto rows = x.of(b);
    for (int64_t c = 0; c < cells; ++c)
      for (int64_t i = 0; i < d; ++i) to[(i * batch + b) * cells + c] = rows(c, i);
  }
}

/// sum[c] += x[c] code[c]
template <class T>
HWY_NOINLINE void add_rows(const T* x, const T* code, int64_t rows, T* sum) {
  const hn::ScalableTag<T> tag;
  const int64_t width = panel_width<T>();
  for (int64_t c = 0; c < rows; ++c, code += width, sum += width) {
    auto s0 = hn::Zero(tag), s1 = s0, c0 = s0, c1 = s0;
    load_pair(tag, sum, s0, s1);
    load_pair(tag, code, c0, c1);
    add_pair(tag, x[c], c0, c1, s0, s1);
    store_pair(tag, s0, s1, sum);
  }
}

template <class T>
struct Forward : Common<T> {
  Forward(const ConvProblem<T>& p, Scratch<T>& scratch)
      : Common<T>(p, scratch),
        columns(scratch.take(p.sides * p.batch * this->cells * p.d)),
        sums(scratch.take(p.sides * p.batch * this->cells * this->width)) {}

  T* columns;  // [side, D, B, cells]
  T* sums;     // [side, B, cells, panel]
};

template <class T, class Method>
void forward_of(const ConvProblem<T>& p, const ConvSide<T>* sides, T* scratch) {
  Scratch<T> pieces(scratch);
  const Forward<T> w(p, pieces);
  Method method(p, pieces);
  const int64_t rows = p.batch * w.cells;
  for (int s = 0; s < p.sides; ++s) {
    method.set_kernel(s, sides[s].kernel, p.scale);
    pack_columns(sides[s].x, p.batch, w.cells, p.d, w.columns + s * p.d * rows);
  }
  for (int64_t panel = 0; panel < w.panels; ++panel) {
    std::fill_n(w.sums, p.sides * rows * w.width, T{0});
    for (int64_t d = 0; d < p.d; ++d) {
      const Samples<T> z = w.noise(d, panel);
      for (int64_t i = 0; i < method.pieces(); ++i) {
        const Piece piece = method.piece(i);
        method.begin(z, i);
        for (int s = 0; s < p.sides; ++s) {
          const T* const code = method.code(s, d);
          for (int64_t b = 0; b < p.batch; ++b) {
            const int64_t at = b * w.cells + piece.first;
            add_rows(w.columns + (s * p.d + d) * rows + at, code, piece.rows,
                     w.sums + (s * rows + at) * w.width);
          }
        }
      }
    }
    for (int s = 0; s < p.sides; ++s)
      for (int64_t b = 0; b < p.batch; ++b) {
        const MatView<T> out = sides[s].out.of(b);
        const T* from = w.sums + (s * rows + b * w.cells) * w.width;
        for (int64_t c = 0; c < w.cells; ++c, from += w.width)
          for (int64_t l = 0; l < w.lanes_of(panel); ++l)
            out(c, panel * w.width + l) = from[l];
      }
  }
}

template <class T>
struct Backward : Common<T> {
  Backward(const ConvProblem<T>& p, Scratch<T>& scratch)
      : Common<T>(p, scratch),
        columns(scratch.take(p.sides * p.batch * this->cells * p.d)),
        d_out(
            scratch.take(p.sides * p.batch * this->cells * this->panels * this->width)),
        d_code(scratch.take(this->cells * this->width)),
        d_x(scratch.take(p.sides * p.batch * this->cells * this->width)) {}

  T* columns;  // [side, D, B, cells]
  T* d_out;    // [side, panel, B, cells, lanes]
  T* d_code;   // [cells, panel]
  T* d_x;      // [side, B, cells, panel]: of one feature, lanes still apart
};

/// Panel by panel, the lanes beyond R zero.
template <class T>
void pack_panels(const Common<T>& w, const ConvRows<const T>& x, T* to) {
  for (int64_t panel = 0; panel < w.panels; ++panel)
    for (int64_t b = 0; b < w.p.batch; ++b) {
      const auto rows = x.of(b);
      for (int64_t c = 0; c < w.cells; ++c, to += w.width)
        for (int64_t l = 0; l < w.width; ++l)
          to[l] = l < w.lanes_of(panel) ? rows(c, panel * w.width + l) : T{0};
    }
}

/// sum[c] += a[c] b[c], lane by lane.
template <class T>
HWY_NOINLINE void add_products(const T* a, const T* b, int64_t rows, T* sum) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t i = 0; i < rows * panel_width<T>(); i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(tag, a + i), hn::LoadU(tag, b + i),
                          hn::LoadU(tag, sum + i)),
               tag, sum + i);
}

/// One piece of one feature and panel: what it gives to x and to the kernels.
template <class T, class Method>
void backward_piece(const Backward<T>& w, Method& method, const Piece& piece, int64_t d,
                    int64_t panel) {
  const ConvProblem<T>& p = w.p;
  const int64_t rows = p.batch * w.cells;
  for (int s = 0; s < p.sides; ++s) {
    const T* const code = method.code(s, d);
    const T* const d_out = w.d_out + (s * w.panels + panel) * rows * w.width;
    std::fill_n(w.d_code, piece.rows * w.width, T{0});
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t at = b * w.cells + piece.first;
      add_products(d_out + at * w.width, code, piece.rows,
                   w.d_x + (s * rows + at) * w.width);
      add_rows(w.columns + (s * p.d + d) * rows + at, d_out + at * w.width, piece.rows,
               w.d_code);
    }
    method.add_gradient(s, w.d_code);
  }
}

template <class T, class Method>
void backward_of(const ConvProblem<T>& p, const ConvSideGradient<T>* sides,
                 T* scratch) {
  Scratch<T> pieces(scratch);
  const Backward<T> w(p, pieces);
  Method method(p, pieces);
  const int64_t rows = p.batch * w.cells;
  for (int s = 0; s < p.sides; ++s) {
    method.set_kernel(s, sides[s].kernel, p.scale);
    pack_columns(sides[s].x, p.batch, w.cells, p.d, w.columns + s * p.d * rows);
    pack_panels(w, sides[s].d_out, w.d_out + s * w.panels * rows * w.width);
  }
  for (int64_t d = 0; d < p.d; ++d) {
    method.clear_gradient();
    std::fill_n(w.d_x, p.sides * rows * w.width, T{0});
    for (int64_t panel = 0; panel < w.panels; ++panel) {
      const Samples<T> z = w.noise(d, panel);
      for (int64_t i = 0; i < method.pieces(); ++i) {
        method.begin(z, i);
        backward_piece(w, method, method.piece(i), d, panel);
      }
    }
    for (int s = 0; s < p.sides; ++s) {
      method.take_gradient(s, p.scale, sides[s].d_kernel + d * p.window.taps());
      for (int64_t b = 0; b < p.batch; ++b)
        for (int64_t c = 0; c < w.cells; ++c)
          sides[s].d_x.of(b)(c, d) =
              sum_of_row(w.d_x + (s * rows + b * w.cells + c) * w.width, w.width);
    }
  }
}

template <class T>
int64_t scratch_of(const ConvProblem<T>& p) {
  const auto count = [&](auto make) {
    Scratch<T> pieces(nullptr);
    make(pieces);
    if (p.method == ConvMethod::fourier)
      Fourier<T>(p, pieces);
    else
      Direct<T>(p, pieces);
    return pieces.used();
  };
  return std::max(count([&](Scratch<T>& pieces) { Forward<T>(p, pieces); }),
                  count([&](Scratch<T>& pieces) { Backward<T>(p, pieces); }));
}

template <class T>
void forward_by(const ConvProblem<T>& p, const ConvSide<T>* sides,
                T* scratch) noexcept {
  if (p.method == ConvMethod::fourier)
    return forward_of<T, Fourier<T>>(p, sides, scratch);
  forward_of<T, Direct<T>>(p, sides, scratch);
}
template <class T>
void backward_by(const ConvProblem<T>& p, const ConvSideGradient<T>* sides,
                 T* scratch) noexcept {
  if (p.method == ConvMethod::fourier)
    return backward_of<T, Fourier<T>>(p, sides, scratch);
  backward_of<T, Direct<T>>(p, sides, scratch);
}

template <class T>
constexpr Kernels<conv_spe<T>, conv_spe_gradient<T>, conv_scratch<T>> kKernels = {
    {forward_by<T>}, {backward_by<T>}, {scratch_of<T>}};

}  // namespace
LAGWISE_KERNELS

}  // namespace lagwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lagwise::kernels {

LAGWISE_CHOOSE

ConvMethod faster_method(const ConvWindow& w) {
  const bool line = w.extent[0] * w.extent[1] * w.kernel[0] * w.kernel[1] == 1;
  const bool is_long = w.kernel[2] >= 32 && 2 * w.extent[2] >= w.kernel[2];
  return line && is_long ? ConvMethod::fourier : ConvMethod::direct;
}

template <class T>
void conv_spe(const ConvProblem<T>& p, const ConvSide<T>* sides, T* scratch) noexcept {
  chosen<T, conv_spe<T>>(p, sides, scratch);
}
template <class T>
void conv_spe_gradient(const ConvProblem<T>& p, const ConvSideGradient<T>* sides,
                       T* scratch) noexcept {
  chosen<T, conv_spe_gradient<T>>(p, sides, scratch);
}
template <class T>
int64_t conv_scratch(const ConvProblem<T>& p) {
  return chosen<T, conv_scratch<T>>(p);
}

LAGWISE_INSTANTIATE(conv_spe)
LAGWISE_INSTANTIATE(conv_spe_gradient)
LAGWISE_INSTANTIATE(conv_scratch)

}  // namespace lagwise::kernels
#endif  // HWY_ONCE
