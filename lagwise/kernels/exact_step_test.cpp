#include "lagwise/kernels/exact_step.h"

#include <bit>
#include <vector>

#include "lagwise/kernels/testing_exact.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using testing::by_definition;
using testing::ExactCase;
using testing::ExactData;
using testing::Mat;

// The keys in pieces of `piece`, joined.
template <class T, class S>
Mat<T> step(const StepHead<T, S>& head, int64_t piece) {
  const int64_t m = head.k.rows, e = head.v.cols;
  std::vector<T> partials, scratch(size_t(kStepKeys), T(NAN));
  int64_t count = 0;
  for (int64_t j = 0; j < m; j += piece, ++count) {
    partials.resize(size_t((count + 1) * (e + 2)), T(NAN));
    exact_step(head, j, std::min(j + piece, m), partials.data() + count * (e + 2),
               scratch.data());
  }
  Mat<T> out(1, e);
  exact_step_join(partials.data(), count, e, out.data());
  return out;
}

template <class T>
StepHead<T, T> head_of(const ExactData<T>& x) {
  const ExactHead<T> h = x.head();
  const auto reversed = [](MatView<const T> table) {
    return table.data ? table.reversed() : table;
  };
  return {x.q.data(),
          h.k,
          h.v,
          h.scale,
          reversed(h.lag_bias),
          reversed(h.lag_keys),
          reversed(h.lag_values),
          h.key_bias};
}

template <class T>
void expect_truth_on_every_target() {
  for (const int64_t m : {1, 7, 255, 256, 257, 1000})
    for (const int64_t d : {1, 19, 64})
      for (const int tables : {0, 15}) {
        ExactCase c{.n = 1, .m = m, .d = d, .e = d == 19 ? 77 : 5};
        c.bias = tables & 1, c.keys = tables & 2, c.values = tables & 4,
        c.key_bias = tables & 8;
        const ExactData<T> x(c);
        const auto want = by_definition(x).out;
        const double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;
        for_each_simd_target([&] {
          for (const int64_t piece : {m, int64_t{100}})
            expect_close(step(head_of(x), piece), want, tolerance);
        });
      }
}

TEST(ExactStep, MatchesTheDefinitionOnEverySimdTarget) {
  expect_truth_on_every_target<float>();
  expect_truth_on_every_target<double>();
}

TEST(ExactStep, ReadsBfloat16) {
  ExactCase c{.n = 1, .m = 300, .d = 37, .e = 70};
  ExactData<float> x(c);
  // Numbers that bfloat16 holds exactly, so that the answer is the same.
  std::vector<Bfloat16> k, v;
  const auto cut = [](Mat<float>& from, std::vector<Bfloat16>& to) {
    for (int64_t i = 0; i < from.rows(); ++i)
      for (int64_t j = 0; j < from.cols(); ++j) {
        const auto bits = std::bit_cast<uint32_t>(from(i, j)) >> 16;
        to.push_back({static_cast<uint16_t>(bits)});
        from(i, j) = std::bit_cast<float>(bits << 16);
      }
  };
  cut(x.k, k), cut(x.v, v);
  const auto want = by_definition(x).out;
  const ExactHead<float> h = x.head();
  const StepHead<float, Bfloat16> head{
      x.q.data(), {k.data(), c.m, c.d, c.d, 1}, {v.data(), c.m, c.e, c.e, 1}, h.scale};
  for_each_simd_target([&] { expect_close(step(head, 128), want, 4e-6); });
}

TEST(ExactStep, GivesZerosWhereNothingIsSeen) {
  ExactCase c{.n = 1, .m = 9};
  c.bias = true;
  ExactData<float> x(c);
  x.bias.fill(-std::numeric_limits<float>::infinity());
  expect_close(step(head_of(x), 4), Mat<float>(1, c.e, 0.0f), 0.0);
  float none = NAN;
  exact_step_join<float>(nullptr, 0, 1, &none);
  EXPECT_EQ(none, 0.0f);
}

}  // namespace
}  // namespace lagwise::kernels
