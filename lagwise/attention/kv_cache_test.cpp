#include "lagwise/attention/kv_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise {
namespace {

constexpr int64_t kRows = 2200, kHeads = 3, kD = 9, kE = 5;  // past one segment

struct Tokens {
  explicit Tokens(at::ScalarType type = at::kDouble)
      : q(at::randn({2, kHeads, kRows, kD}, type)),
        k(at::randn({2, kHeads, kRows, kD}, type)),
        v(at::randn({2, kHeads, kRows, kE}, type)),
        bias(at::randn({kHeads, 2 * kRows - 1}, type)),
        keys(at::randn({1, 2 * kRows - 1, kD}, type)),
        values(at::randn({kHeads, 2 * kRows - 1, kE}, type)) {}
  at::Tensor q, k, v, bias, keys, values;

  /// Row i as an encoding would hand it over: against keys 0..i.
  Encoded row(int64_t i) const {
    const int64_t first = kRows - 1;  // lag 0
    Encoded x{.q = q.narrow(2, i, 1), .k = {}, .scale = 0.4};
    x.lag_bias = bias.narrow(1, first, i + 1);
    x.lag_keys = keys.narrow(1, first, i + 1);
    x.lag_values = values.narrow(1, first, i + 1);
    return x;
  }
  at::Tensor all(ops::Optional<int64_t> window = {}) const {
    ops::ExactOptions options;
    options.causal = true;
    options.scale = 0.4;
    options.lag_bias = bias, options.lag_keys = keys, options.lag_values = values;
    options.window = window;
    return ops::exact_attention(q, k, v, options);
  }
};

double worst(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(KeyValueCache, AStepIsTheLastRowOfTheWhole) {
  const Tokens t;
  using Window = ops::Optional<int64_t>;
  for (const Window window : {Window(), Window(100)}) {
    const at::Tensor all = t.all(window);
    KeyValueCache cache(at::kDouble);
    int64_t begin = 0;
    for (const int64_t end : {1, 2, 64, 65, 700, 2199, 2200}) {
      cache.append(t.k.slice(2, begin, end), t.v.slice(2, begin, end));
      begin = end;
      EXPECT_EQ(cache.length(), end);
      EXPECT_LE(worst(cache.step(t.row(end - 1), window), all.slice(2, end - 1, end)),
                1e-12)
          << "at " << end;
    }
  }
}

TEST(KeyValueCache, AnySplitGivesTheSameCache) {
  const Tokens t(at::kFloat);
  KeyValueCache whole, parts;
  whole.append(t.k, t.v);
  for (int64_t i = 0; i < kRows; i += 37)
    parts.append(t.k.slice(2, i, std::min(i + 37, kRows)),
                 t.v.slice(2, i, std::min(i + 37, kRows)));
  EXPECT_TRUE(whole.keys().equal(parts.keys()));
  EXPECT_TRUE(whole.values().equal(parts.values()));
  EXPECT_TRUE(whole.step(t.row(kRows - 1)).equal(parts.step(t.row(kRows - 1))));
}

TEST(KeyValueCache, BFloat16CostsTheRoundingOfKeysAndValuesAlone) {
  Tokens t(at::kFloat);
  KeyValueCache half(at::kBFloat16), full;
  half.append(t.k, t.v);
  full.append(t.k.to(at::kBFloat16).to(at::kFloat),
              t.v.to(at::kBFloat16).to(at::kFloat));
  EXPECT_EQ(half.keys().scalar_type(), at::kBFloat16);
  EXPECT_LE(worst(half.step(t.row(kRows - 1)), full.step(t.row(kRows - 1))), 1e-6);
}

template <class Act>
std::string refusal(const Act& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(KeyValueCache, RefusesWhatDoesNotFit) {
  KeyValueCache cache;
  const auto says = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  says(refusal([] { KeyValueCache{at::kLong}; }),
       "Float, Double or BFloat16, got Long");
  says(refusal([&] { cache.keys(); }), "got none");
  cache.append(at::ones({1, 2, 3, 4}), at::ones({1, 2, 3, 5}));
  says(refusal([&] {
         cache.append(at::ones({2, 4}), at::ones({2, 4}));
       }),
       "expected k [B, H, n, D], got [2, 4]");
  says(refusal([&] {
         cache.append(at::ones({1, 2, 3, 4}), at::ones({1, 2, 2, 5}));
       }),
       "to match k, got [1, 2, 2, 5]");
  says(refusal([&] {
         cache.append(at::ones({1, 2, 1, 9}), at::ones({1, 2, 1, 5}));
       }),
       "seen before, got [1, 2, 1, 9]");
  says(refusal([&] {
         cache.step({.q = at::ones({1, 2, 2, 4}), .k = {}});
       }),
       "expected q [B, H, 1, D], got [1, 2, 2, 4]");
}

TEST(KeyValueCache, ForgetsAllButTheLastTokensIfTold) {
  const at::Tensor k = at::randn({2, kHeads, 1000, kD}, at::kDouble);
  const at::Tensor v = at::randn({2, kHeads, 1000, kE}, at::kDouble);
  KeyValueCache cache(at::kDouble);
  int64_t begin = 0;
  for (const int64_t end : {1, 5, 40, 300, 301, 302, 650, 1000}) {
    cache.append(k.slice(2, begin, end), v.slice(2, begin, end));
    cache.keep_last(37);
    begin = end;
    const int64_t first = std::max<int64_t>(0, end - 37);
    EXPECT_EQ(cache.length(), end - first);
    EXPECT_EQ(cache.seen(), end);
    EXPECT_TRUE(cache.keys().equal(k.slice(2, first, end)));
    EXPECT_TRUE(cache.values().equal(v.slice(2, first, end)));
  }
}

TEST(KeyValueCache, ACopyHasMemoryOfItsOwn) {
  KeyValueCache cache(at::kFloat);
  const at::Tensor row = at::ones({2, 1, 1, 4}, at::kFloat);
  cache.append(row, row);
  KeyValueCache copy = cache.copied();
  cache.append(2 * row, row);
  copy.append(3 * row, row);
  EXPECT_EQ(cache.keys()[0][0][1][0].item<float>(), 2);
  EXPECT_EQ(copy.keys()[0][0][1][0].item<float>(), 3);
}

TEST(KeyValueCache, SequencesCanChangePlaces) {
  KeyValueCache cache(at::kFloat);
  const at::Tensor rows = at::randn({3, 2, 5, 4}, at::kFloat);
  cache.append(rows, 2 * rows);
  const at::Tensor order = at::tensor({2, 0, 2}, at::kLong);
  cache.reorder(order);
  EXPECT_TRUE(cache.keys().equal(rows.index_select(0, order)));
  EXPECT_TRUE(cache.values().equal(2 * rows.index_select(0, order)));
}

/// However many tokens pass, the memory behind the rows stays the same.
TEST(KeyValueCache, DoesNotGrowUnderAWindow) {
  KeyValueCache cache(at::kFloat);
  const at::Tensor row = at::ones({1, 1, 1, 4}, at::kFloat);
  size_t behind = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    cache.append(row, row);
    cache.keep_last(50);
    if (i == 500) behind = cache.keys().storage().nbytes();
  }
  EXPECT_EQ(cache.keys().storage().nbytes(), behind);
}

}  // namespace
}  // namespace lagwise
