#include "lagwise/encodings/lrpe_projection.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lagwise {
namespace {

using at::Tensor;

Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  at::manual_seed(seed);
  return at::randn(sizes, at::kDouble);
}

TEST(LrpeProjection, KeepsEveryProduct) {
  for (const std::string& kind : LrpeProjection::kinds()) {
    for (const int64_t d : {1, 2, 7, 8}) {
      const LrpeProjection project(kind, d);
      const Tensor q = normal({3, d}, 1), k = normal({4, d}, 2), v = normal({3, d}, 3);
      const Tensor pq = project(q, v, false), pk = project(k, v, false);
      EXPECT_EQ(pq.size(1), project.complex() ? 2 * d : d);
      EXPECT_TRUE(
          at::allclose(at::matmul(pq, pk.t()), at::matmul(q, k.t()), 1e-12, 1e-12))
          << kind << " D " << d;
    }
  }
}

TEST(LrpeProjection, DealsHalvesOutToOddAndEven) {
  const Tensor x = at::arange(7, at::kDouble).view({1, 7});
  EXPECT_TRUE(
      at::equal(LrpeProjection("odd_even", 7)(x, {}, false),
                at::tensor({0., 4., 1., 5., 2., 6., 3.}).view({1, 7}).to(at::kDouble)));
}

TEST(LrpeProjection, ReflectsOneVectorAfterAnother) {
  const Tensor x = normal({3, 5}, 1), v = normal({2, 5}, 2);
  Tensor want = x;
  for (const Tensor& v_i : v.unbind(0)) {
    const Tensor u = v_i / v_i.norm();
    want = want - 2 * at::matmul(want, u).unsqueeze(1) * u.unsqueeze(0);
  }
  const LrpeProjection project("householder", 5);
  EXPECT_TRUE(at::allclose(project(x, v, false), want, 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(project(x, v, true), want, 1e-5, 1e-5));
  EXPECT_FALSE(at::allclose(project(x, v, true), want, 1e-10, 1e-10));  // |v| + 1e-6
}

TEST(HouseholderVectors, DependOnSeedAndLayer) {
  const Tensor v = householder_vectors(2, 64, 1, 0);
  EXPECT_TRUE(at::equal(v, householder_vectors(2, 64, 1, 0)));
  EXPECT_FALSE(at::equal(v, householder_vectors(2, 64, 2, 0)));
  EXPECT_FALSE(at::equal(v, householder_vectors(2, 64, 1, 1)));
  EXPECT_FALSE(at::equal(v[0], v[1]));
}

}  // namespace
}  // namespace lagwise
