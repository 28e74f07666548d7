#include "lagwise/kernels/delta_rule.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"
#include "lagwise/kernels/linear_step.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::kEveryStorage;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

struct DeltaCase {
  int64_t n = 40, d = 7, e = 5;
  bool gates = true, decay = false, state = true;
  Storage storage = Storage::dense;
};

template <class T>
std::vector<T> space(int64_t size) {
  return std::vector<T>(static_cast<size_t>(size), std::numeric_limits<T>::quiet_NaN());
}

/// One head. Strengths are such that b |k|^2 < 2, or the state would grow; row n / 2
/// begins a document where there are gates.
template <class T>
struct DeltaHead {
  explicit DeltaHead(const DeltaCase& c)
      : shape(c),
        q(Mat<T>::uniform(c.n, c.d, 1, -1, 1, c.storage)),
        k(Mat<T>::uniform(c.n, c.d, 2, -1, 1, c.storage)),
        v(Mat<T>::uniform(c.n, c.e, 3, -1, 1, c.storage)),
        b(Mat<T>::uniform(c.n, 1, 4, 0, 1.9 / static_cast<double>(c.d))),
        gate(Mat<T>::uniform(c.n, 1, 5, -0.5, 0)),
        log_factor(1, 1, static_cast<T>(-0.1)),
        s(Mat<T>::uniform(c.d, c.e, 6, -1, 1, c.storage)),
        d_out(Mat<T>::uniform(c.n, c.e, 7, -1, 1, c.storage)),
        d_s(Mat<T>::uniform(c.d, c.e, 8, -1, 1)) {
    if (c.n > 0) gate(c.n / 2, 0) = -std::numeric_limits<T>::infinity();
  }

  DeltaInputs<T> inputs() const {
    Decay<T> fade;
    if (shape.decay) fade = {Decay<T>::By::head, log_factor.view()};
    if (shape.gates) fade.log_gate = gate.view();
    return {{q.view()}, {k.view()}, {v.view()},
            b.view(),   fade,       shape.state ? s.view() : MatView<const T>{}};
  }
  double factor(int64_t i) const {
    return std::exp((shape.gates ? double{gate(i, 0)} : 0.0) +
                    (shape.decay ? double{log_factor(0, 0)} : 0.0));
  }

  DeltaCase shape;
  Mat<T> q, k, v, b, gate, log_factor, s, d_out, d_s;
};

/// The definition and its gradients, token by token in f64.
struct DeltaTruth {
  explicit DeltaTruth(const DeltaCase& c)
      : out(c.n, c.e, 0.0),
        s(c.d, c.e, 0.0),
        d_q(c.n, c.d, 0.0),
        d_k(c.n, c.d, 0.0),
        d_v(c.n, c.e, 0.0),
        d_b(c.n, 1, 0.0),
        d_gate(c.n, 1, 0.0),
        d_s(c.d, c.e, 0.0) {}
  Mat<double> out, s, d_q, d_k, d_v, d_b, d_gate, d_s;
};

/// S <- g S before each token, kept, and the errors v - S^T k.
template <class T>
void forwards(const DeltaHead<T>& x, DeltaTruth& to, std::vector<Mat<double>>& faded,
              Mat<double>& errors) {
  const auto& [n, d, e, gates, decay, state, storage] = x.shape;
  for (int64_t r = 0; r < d; ++r)
    for (int64_t c = 0; c < e; ++c) to.s(r, c) = state ? double{x.s(r, c)} : 0.0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t r = 0; r < d; ++r)
      for (int64_t c = 0; c < e; ++c) to.s(r, c) *= x.factor(i);
    faded.push_back(to.s);
    for (int64_t c = 0; c < e; ++c) {
      errors(i, c) = x.v(i, c);
      for (int64_t r = 0; r < d; ++r) errors(i, c) -= to.s(r, c) * double{x.k(i, r)};
      for (int64_t r = 0; r < d; ++r) {
        to.s(r, c) += double{x.b(i, 0)} * double{x.k(i, r)} * errors(i, c);
        to.out(i, c) += to.s(r, c) * double{x.q(i, r)};
      }
    }
  }
}

/// One token backwards: `r` is the gradient of the state after it, then before it.
template <class T>
void token_back(const DeltaHead<T>& x, int64_t i, const Mat<double>& faded,
                const Mat<double>& errors, Mat<double>& r, DeltaTruth& to) {
  const int64_t d = x.shape.d, e = x.shape.e;
  const double b = x.b(i, 0);
  for (int64_t c = 0; c < e; ++c) {
    double d_u = 0;
    for (int64_t p = 0; p < d; ++p) {
      const double k = x.k(i, p), g = x.d_out(i, c);
      to.d_q(i, p) += (faded(p, c) + k * b * errors(i, c)) * g;
      r(p, c) += double{x.q(i, p)} * g;
      d_u += r(p, c) * k;
      to.d_k(i, p) += r(p, c) * b * errors(i, c);
    }
    to.d_b(i, 0) += d_u * errors(i, c);
    to.d_v(i, c) = b * d_u;
    for (int64_t p = 0; p < d; ++p) {
      to.d_k(i, p) -= faded(p, c) * b * d_u;
      r(p, c) -= double{x.k(i, p)} * b * d_u;
      to.d_gate(i, 0) += r(p, c) * faded(p, c);
      r(p, c) *= x.factor(i);
    }
  }
}

template <class T>
DeltaTruth by_token(const DeltaHead<T>& x) {
  DeltaTruth to(x.shape);
  std::vector<Mat<double>> faded;
  Mat<double> errors(x.shape.n, x.shape.e, 0.0);
  forwards(x, to, faded, errors);
  for (int64_t p = 0; p < x.shape.d; ++p)
    for (int64_t c = 0; c < x.shape.e; ++c) to.d_s(p, c) = x.d_s(p, c);
  for (int64_t i = x.shape.n - 1; i >= 0; --i)
    token_back(x, i, faded[static_cast<size_t>(i)], errors, to.d_s, to);
  return to;
}

template <class T>
Mat<T> start_of(const DeltaHead<T>& x) {
  return x.shape.state ? x.s : Mat<T>(x.shape.d, x.shape.e, T{0});
}

template <class T>
void expect_definition(const DeltaCase& c) {
  const DeltaHead<T> x(c);
  const DeltaTruth want = by_token(x);
  const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
  for_each_simd_target([&] {
    const auto in = x.inputs();
    Mat<T> out(c.n, c.e, c.storage), s = start_of(x);
    auto scratch = space<T>(delta_scratch<T>(c.d, c.e));
    delta_linear<T>(in.q, in.k, in.v, in.write_strength, in.decay, s.view(),
                    {out.view()}, scratch.data());
    expect_close(out, want.out, tolerance);
    expect_close(s, want.s, tolerance);

    Mat<T> d_q(c.n, c.d, c.storage), d_k(c.n, c.d, c.storage), d_v(c.n, c.e, c.storage);
    Mat<T> d_b(c.n, 1), d_gate(c.n, 1), d_s(x.d_s);
    auto more = space<T>(delta_gradient_scratch<T>(c.n, c.d, c.e));
    delta_gradient<T>(in, {x.d_out.view()},
                      {{d_q.view()},
                       {d_k.view()},
                       {d_v.view()},
                       d_b.view(),
                       d_gate.view(),
                       d_s.view()},
                      more.data());
    expect_close(d_q, want.d_q, tolerance);
    expect_close(d_k, want.d_k, tolerance);
    expect_close(d_v, want.d_v, tolerance);
    expect_close(d_b, want.d_b, tolerance);
    expect_close(d_gate, want.d_gate, tolerance);
    expect_close(d_s, want.d_s, tolerance);
  });
}

TEST(DeltaRule, IsTheDefinitionWithEveryGradient) {
  for (int64_t n : {0, 1, 2, 15, 16, 17, 32, 33, 50})
    for (int64_t d : {1, 7, 33})
      for (int64_t e : {1, 16, 40}) {
        expect_definition<float>({.n = n, .d = d, .e = e});
        expect_definition<double>({.n = n, .d = d, .e = e});
      }
}

TEST(DeltaRule, TakesAnyDecayStateAndStorage) {
  for (Storage storage : kEveryStorage)
    for (bool gates : {false, true})
      for (bool decay : {false, true})
        for (bool state : {false, true}) {
          const DeltaCase c{.n = 35,
                            .gates = gates,
                            .decay = decay,
                            .state = state,
                            .storage = storage};
          expect_definition<float>(c);
          expect_definition<double>(c);
        }
}

TEST(DeltaRule, ColumnsHaveTheSameBitsHoweverTheyAreSplit) {
  const DeltaCase c{.n = 35, .d = 20, .e = 100};
  const DeltaHead<float> x(c);
  for_each_simd_target([&] {
    const auto in = x.inputs();
    Mat<float> whole(c.n, c.e), parts(c.n, c.e), s(x.s), s_parts(x.s);
    auto scratch = space<float>(delta_scratch<float>(c.d, c.e));
    const auto run = [&](Mat<float>& out, Mat<float>& state, int64_t begin,
                         int64_t end) {
      delta_linear<float>(in.q, in.k, {in.v.x.columns(begin, end)}, in.write_strength,
                          in.decay, state.view().columns(begin, end),
                          {out.view().columns(begin, end)}, scratch.data());
    };
    run(whole, s, 0, 100);
    run(parts, s_parts, 0, 32), run(parts, s_parts, 32, 100);
    expect_close(parts, whole, 0);
    expect_close(s_parts, s, 0);
  });
}

TEST(DeltaRule, StepsEqualACall) {
  const DeltaCase c{.n = 40, .d = 12, .e = 39, .decay = true};
  const DeltaHead<double> x(c);
  for_each_simd_target([&] {
    const auto in = x.inputs();
    Mat<double> whole(c.n, c.e), stepped(c.n, c.e), s(x.s), s_step(x.s);
    auto scratch = space<double>(delta_scratch<double>(c.d, c.e));
    auto own = space<double>(linear_step_scratch<double>(c.d, 0));
    delta_linear<double>(in.q, in.k, in.v, in.write_strength, in.decay, s.view(),
                         {whole.view()}, scratch.data());
    for (int64_t i = 0; i < c.n; ++i) {
      const Rows<double> q{in.q.x.slice(i, i + 1)}, k{in.k.x.slice(i, i + 1)};
      Decay<double> decay = in.decay;
      decay.log_gate = in.decay.log_gate.slice(i, i + 1);
      linear_step<double>(q, k, q, k, in.v.x.slice(i, i + 1), decay, {}, s_step.view(),
                          stepped.view().slice(i, i + 1), own.data(),
                          in.write_strength.row(i));
    }
    expect_close(stepped, whole, 1e-12);
    expect_close(s_step, s, 1e-12);
  });
}

}  // namespace
}  // namespace lagwise::kernels
