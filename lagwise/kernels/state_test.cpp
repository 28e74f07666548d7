// absorb and read_state: the two halves of full linear attention.

#include <cmath>
#include <limits>
#include <vector>

#include "lagwise/core/testing.h"
#include "lagwise/kernels/linear_attention.h"

namespace lagwise::kernels {
namespace {

using lagwise::testing::expect_close;
using lagwise::testing::for_each_simd_target;
using lagwise::testing::Mat;
using lagwise::testing::Storage;

template <class T>
constexpr double kTolerance = sizeof(T) == 4 ? 4e-6 : 1e-12;

template <class T>
std::vector<T> scratch_for(int64_t d, int64_t e) {
  return std::vector<T>(static_cast<size_t>(linear_scratch<T>(d, e)),
                        std::numeric_limits<T>::quiet_NaN());
}

template <class T>
void expect_sums(int64_t m, int64_t d, int64_t e, Storage storage) {
  const auto k = Mat<T>::uniform(m, d, 1, -1, 1, storage);
  const auto v = Mat<T>::uniform(m, e, 2, -1, 1, storage);
  const auto s0 = Mat<T>::uniform(d, e, 3, -1, 1, storage);
  const auto z0 = Mat<T>::uniform(1, d, 4, -1, 1);
  Mat<double> s(d, e, 0.0), z(1, d, 0.0);
  for (int64_t i = 0; i < d; ++i) {
    z(0, i) = z0(0, i);
    for (int64_t j = 0; j < m; ++j) z(0, i) += k(j, i);
    for (int64_t c = 0; c < e; ++c) {
      s(i, c) = s0(i, c);
      for (int64_t j = 0; j < m; ++j) s(i, c) += double{k(j, i)} * v(j, c);
    }
  }
  for_each_simd_target([&] {
    Mat<T> got(s0), got_z(z0);
    auto scratch = scratch_for<T>(d, e);
    absorb<T>({k.view()}, {v.view()}, got.view(), got_z.data(), scratch.data());
    expect_close(got, s, kTolerance<T>);
    expect_close(got_z, z, kTolerance<T>);
  });
}

TEST(Absorb, AddsKeysAndValuesToTheState) {
  for (int64_t m : {0, 1, 63, 64, 65, 200})
    for (int64_t d : {1, 7, 32})
      for (int64_t e : {0, 1, 5, 48})
        for (Storage storage : {Storage::dense, Storage::transposed}) {
          expect_sums<float>(m, d, e, storage);
          expect_sums<double>(m, d, e, storage);
        }
}

template <class T>
void expect_read(int64_t n, int64_t d, int64_t e, bool clamp) {
  using From = typename Denominator<T>::From;
  const auto q = Mat<T>::uniform(n, d, 1, 0, 1);
  const auto s = Mat<T>::uniform(d, e, 3, -1, 1);
  auto z = Mat<T>::uniform(1, d, 4, 0, 1);
  Mat<double> plain(n, e, 0.0), divided(n, e, 0.0), den(n, 1, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < d; ++j) sum += double{q(i, j)} * z(0, j);
    den(i, 0) = clamp ? std::max(sum, 0.25) : sum + 0.25;
    for (int64_t c = 0; c < e; ++c) {
      for (int64_t j = 0; j < d; ++j) plain(i, c) += double{q(i, j)} * s(j, c);
      divided(i, c) = plain(i, c) / den(i, 0);
    }
  }
  for_each_simd_target([&] {
    auto scratch = scratch_for<T>(d, e);
    Mat<T> out(n, e), got_den(n, 1);
    read_state<T>({q.view()}, {}, s.view(), {out.view()}, scratch.data());
    expect_close(out, plain, kTolerance<T>);
    read_state<T>({q.view()},
                  {From::features, T{0.25}, clamp, got_den.view(), z.data()}, s.view(),
                  {out.view()}, scratch.data());
    expect_close(out, divided, kTolerance<T>);
    expect_close(got_den, den, kTolerance<T>);
    out.fill(0);
    read_state<T>({q.view()}, {From::given, T{0}, false, got_den.view()}, s.view(),
                  {out.view()}, scratch.data());
    expect_close(out, divided, kTolerance<T>);
  });
}

TEST(ReadState, GivesTheQuotientOfTheState) {
  for (int64_t n : {0, 1, 31, 33, 100})
    for (int64_t d : {1, 7, 32})
      for (int64_t e : {0, 1, 48})
        for (bool clamp : {false, true}) {
          expect_read<float>(n, d, e, clamp);
          expect_read<double>(n, d, e, clamp);
        }
}

}  // namespace
}  // namespace lagwise::kernels
