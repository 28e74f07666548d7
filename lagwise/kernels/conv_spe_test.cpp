#include "lagwise/kernels/conv_spe.h"

#include <string>
#include <vector>

#include "lagwise/core/testing.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

struct Shape {
  ConvWindow window;
  int64_t batch, d, r;
};

const std::vector<Shape> kShapes = {
    {{{0, 0, 5}, {1, 1, 0}, {1, 1, 4}}, 1, 2, 3},        // no cells
    {{{0, 0, 999'999}, {1, 1, 1}, {1, 1, 5}}, 1, 2, 3},  // one, far out
    {{{0, 0, 3}, {1, 1, 7}, {1, 1, 1}}, 2, 3, 16},
    {{{0, 0, 0}, {1, 1, 131}, {1, 1, 9}}, 1, 2, 17},
    {{{0, 0, 2}, {1, 1, 6}, {1, 1, 40}}, 2, 2, 5},  // a kernel longer than the line
    {{{0, 0, 1}, {1, 1, 170}, {1, 1, 33}}, 2, 9, 18},
    {{{0, 2, 0}, {1, 5, 7}, {1, 3, 2}}, 2, 2, 5},
    {{{1, 0, 0}, {2, 3, 4}, {2, 1, 3}}, 1, 2, 18},
};

/// Inputs of a head with two sides, by their definition in f64.
template <class T>
struct Head {
  explicit Head(const Shape& shape, Storage storage = Storage::dense) : s(shape) {
    const int64_t rows = s.batch * s.window.cells();
    for (uint64_t side = 0; side < 2; ++side) {
      x.push_back(Mat<T>::uniform(rows, s.d, 1 + side, -1, 1, storage));
      kernel.push_back(Mat<T>::uniform(s.d, s.window.taps(), 3 + side, -1, 1));
      d_out.push_back(Mat<T>::uniform(rows, s.r, 5 + side, -1, 1, storage));
    }
  }

  ConvProblem<T> problem(ConvMethod method, NoiseKind kind = NoiseKind::normal) const {
    ConvProblem<T> p{.window = s.window,
                     .noise = {.row = Noise(7, 4).at({.head = 3}), .kind = kind}};
    p.noise.pitch = {1 << 20, 1 << 10, 1};
    p.method = method, p.batch = s.batch, p.d = s.d, p.r = s.r, p.sides = 2;
    p.scale = static_cast<T>(0.5);
    return p;
  }

  Shape s;
  std::vector<Mat<T>> x, kernel, d_out;
};

double sample(const Noise& noise, NoiseKind kind, int64_t d, int64_t r, int64_t i,
              int64_t j, int64_t n) {
  const NoiseRow row = noise.at({.head = 3, .feature = d, .realisation = r});
  const int64_t at = (i << 20) + (j << 10) + n;
  return kind == NoiseKind::normal ? row.normal(at) : row.sign(at);
}

struct Result {
  std::vector<Mat<double>> out, d_x, d_kernel;
};

/// out = sum_d x scale sum_j a[j] z[c + j], and its derivatives.
template <class T>
Result by_definition(const Head<T>& head, NoiseKind kind) {
  const auto& [w, batch, d, r] = head.s;
  const Noise noise(7, 4);
  Result result;
  for (size_t side = 0; side < 2; ++side) {
    Mat<double> out(batch * w.cells(), r, 0.0), d_x(batch * w.cells(), d, 0.0),
        d_kernel(d, w.taps(), 0.0);
    for (int64_t c = 0; c < w.cells(); ++c) {
      const int64_t c0 = c / (w.extent[1] * w.extent[2]),
                    c1 = c / w.extent[2] % w.extent[1], c2 = c % w.extent[2];
      for (int64_t f = 0; f < d; ++f)
        for (int64_t l = 0; l < r; ++l)
          for (int64_t tap = 0; tap < w.taps(); ++tap) {
            const int64_t t0 = tap / (w.kernel[1] * w.kernel[2]),
                          t1 = tap / w.kernel[2] % w.kernel[1], t2 = tap % w.kernel[2];
            const double z = 0.5 * sample(noise, kind, f, l, w.origin[0] + c0 + t0,
                                          w.origin[1] + c1 + t1, w.origin[2] + c2 + t2);
            for (int64_t b = 0; b < batch; ++b) {
              const int64_t row = b * w.cells() + c;
              const double x = head.x[side](row, f), g = head.d_out[side](row, l);
              const double a = head.kernel[side](f, tap);
              out(row, l) += x * a * z;
              d_x(row, f) += g * a * z;
              d_kernel(f, tap) += g * x * z;
            }
          }
    }
    result.out.push_back(out);
    result.d_x.push_back(d_x);
    result.d_kernel.push_back(d_kernel);
  }
  return result;
}

template <class T>
ConvRows<T> rows_of(MatView<T> all, int64_t cells) {
  return {{all.data, cells, all.cols, all.row_step, all.col_step},
          cells * all.row_step};
}

template <class T>
void expect_definition(const Head<T>& head, ConvMethod method, NoiseKind kind,
                       const Result& want, Storage storage = Storage::dense) {
  const int64_t cells = head.s.window.cells(), rows = head.s.batch * cells;
  const ConvProblem<T> p = head.problem(method, kind);
  std::vector<T> scratch(static_cast<size_t>(conv_scratch(p)));
  std::vector<Mat<T>> out, d_x, d_kernel;
  for (int side = 0; side < 2; ++side) {
    out.emplace_back(rows, head.s.r, storage);
    d_x.emplace_back(rows, head.s.d, storage);
    d_kernel.emplace_back(head.s.d, head.s.window.taps());
  }
  std::vector<ConvSide<T>> sides;
  std::vector<ConvSideGradient<T>> gradients;
  for (size_t side = 0; side < 2; ++side) {
    const auto x = rows_of(head.x[side].view(), cells);
    sides.push_back({x, head.kernel[side].data(), rows_of(out[side].view(), cells)});
    gradients.push_back({x, head.kernel[side].data(),
                         rows_of(head.d_out[side].view(), cells),
                         rows_of(d_x[side].view(), cells), d_kernel[side].data()});
  }
  conv_spe<T>(p, sides.data(), scratch.data());
  conv_spe_gradient<T>(p, gradients.data(), scratch.data());
  const double tolerance = sizeof(T) == 4 ? 3e-6 : 1e-13;
  for (size_t side = 0; side < 2; ++side) {
    expect_close(out[side], want.out[side], tolerance);
    expect_close(d_x[side], want.d_x[side], tolerance);
    expect_close(d_kernel[side], want.d_kernel[side], tolerance, 1e-12);
  }
}

bool is_line(const ConvWindow& w) { return w.extent[0] * w.extent[1] == 1; }

template <class T>
void expect_definition_everywhere() {
  for (const Shape& shape : kShapes)
    for (const NoiseKind kind : {NoiseKind::normal, NoiseKind::sign}) {
      SCOPED_TRACE("cells " + std::to_string(shape.window.cells()) + " taps " +
                   std::to_string(shape.window.taps()));
      const Head<T> head(shape);
      const Result want = by_definition(head, kind);
      for_each_simd_target([&] {
        expect_definition(head, ConvMethod::direct, kind, want);
        if (is_line(shape.window))
          expect_definition(head, ConvMethod::fourier, kind, want);
      });
    }
}

TEST(ConvSpe, EqualsItsDefinitionForwardAndBackward) {
  expect_definition_everywhere<float>();
  expect_definition_everywhere<double>();
}

TEST(ConvSpe, TakesRowsOfAnyStorage) {
  for (Storage storage : lagwise::testing::kEveryStorage) {
    const Head<float> head(kShapes[2], storage);
    const Result want = by_definition(head, NoiseKind::sign);
    expect_definition(head, ConvMethod::direct, NoiseKind::sign, want, storage);
  }
}

TEST(ConvSpe, GivesACellTheSameBitsInAnyWindowWhenDirect) {
  const Head<float> head({{{0, 0, 10}, {1, 1, 40}, {1, 1, 21}}, 1, 5, 20});
  for_each_simd_target([&] {
    const auto run = [&](int64_t begin, int64_t end) {
      ConvProblem<float> p = head.problem(ConvMethod::direct);
      p.sides = 1;
      p.window.origin[2] += begin, p.window.extent[2] = end - begin;
      std::vector<float> scratch(static_cast<size_t>(conv_scratch(p)));
      Mat<float> out(end - begin, 20);
      const ConvSide<float> side{
          {head.x[0].view().slice(begin, end)}, head.kernel[0].data(), {out.view()}};
      conv_spe<float>(p, &side, scratch.data());
      return out;
    };
    const Mat<float> whole = run(0, 40);
    for (const auto& [begin, end] : {std::pair{0, 1}, {7, 8}, {3, 40}, {11, 27}})
      expect_close(run(begin, end), whole.view().slice(begin, end), 0);
  });
}

TEST(ConvSpe, TakesFouriersWayAlongLinesThatALongKernelFits) {
  const auto chosen = [](std::array<int64_t, 3> extent, std::array<int64_t, 3> kernel) {
    return faster_method({.origin = {0, 0, 0}, .extent = extent, .kernel = kernel});
  };
  EXPECT_EQ(chosen({1, 1, 512}, {1, 1, 32}), ConvMethod::fourier);
  EXPECT_EQ(chosen({1, 1, 64}, {1, 1, 128}), ConvMethod::fourier);
  EXPECT_EQ(chosen({1, 1, 63}, {1, 1, 128}),
            ConvMethod::direct);  // most of it is padding
  EXPECT_EQ(chosen({1, 1, 512}, {1, 1, 31}), ConvMethod::direct);
  EXPECT_EQ(chosen({1, 8, 64}, {1, 1, 64}), ConvMethod::direct);
  EXPECT_EQ(chosen({1, 1, 64}, {1, 2, 64}), ConvMethod::direct);
}

TEST(ConvSpe, ReadsGivenNoise) {
  const Shape shape{{{0, 0, 4}, {1, 1, 50}, {1, 1, 12}}, 1, 3, 21};
  const Head<double> head(shape);
  const Result want = by_definition(head, NoiseKind::normal);
  const int64_t first = 1, count = 70;
  for (const bool transposed : {false, true}) {
    std::vector<double> z(static_cast<size_t>(shape.d * count * shape.r));
    const int64_t step = transposed ? 1 : shape.r, across = transposed ? count : 1;
    for (int64_t d = 0; d < shape.d; ++d)
      for (int64_t n = 0; n < count; ++n)
        for (int64_t r = 0; r < shape.r; ++r)
          z[static_cast<size_t>(d * count * shape.r + n * step + r * across)] =
              sample(Noise(7, 4), NoiseKind::normal, d, r, 0, 0, first + n);
    for (ConvMethod method : {ConvMethod::direct, ConvMethod::fourier}) {
      ConvProblem<double> p = head.problem(method);
      p.sides = 1;
      p.noise.given = z.data();
      p.noise.feature_step = count * shape.r, p.noise.realisation_step = across;
      p.noise.step = {0, 0, step}, p.noise.given_origin = {0, 0, first};
      std::vector<double> scratch(static_cast<size_t>(conv_scratch(p)));
      Mat<double> out(50, 21);
      const ConvSide<double> side{
          {head.x[0].view()}, head.kernel[0].data(), {out.view()}};
      conv_spe<double>(p, &side, scratch.data());
      expect_close(out, want.out[0], 1e-13);
    }
  }
}

}  // namespace
}  // namespace lagwise::kernels
