// What every encoding promises. It runs over the registry, so a new encoding is under
// test from the moment it is registered.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/testing_subject.h"

namespace lagwise {
namespace {

using at::Tensor;
using testing::normal;
using testing::Stream;
using testing::Subject;

constexpr int64_t kLong = 307;  // a prime past every clip, bucket and period

/// Every row as its example, and options that change what an encoding hands over.
std::vector<std::string> subjects() {
  std::vector<std::string> texts = {
      "conv_spe:kernel=9,shared=false",
      "decay:kind=learned",
      "decay:kind=lightning",
      "huang:max=40,tables=head,beyond=zero",
      "kerple:kind=power",
      "lrpe:lambda=mixed,p=dct",
      "lrpe:lambda=permutation,p=householder",
      "lrpe:lambda=unitary,angles=learned,spread=true,decay=lightning",
      "lrpe:lambda=rotation,p=identity,angles=fixed,decay=alibi",
      "lrpe:vectors=learned,reflections=2",
      "lrpe:lambda=unitary,p=fourier",
      "lrpe:type=b",
      "rope:layout=interleaved,scaling=dynamic_ntk,factor=4",
      "rope:layout=interleaved,scaling=yarn,factor=4,partial=0.5",
      "rope:layout=interleaved,decay=lightning",
      "rope:layout=interleaved,xpos=true",
      "rope:layout=half,xpos=scores,centre=500",
      "sine_spe:noise=exact,decay=alibi",
      "sine_spe:noise=sketch,shared=false",
      "sine_spe:shared=false",
      "sinusoidal:layout=tensor2tensor,decay=alibi",
  };
  for (const EncodingRow& row : encodings()) texts.emplace_back(row.text());
  return texts;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

/// Subjects need the horizon they say they need, and no more.
Subject make(const std::string& text, HeadShape shape = {.heads = 4, .dim = 8}) {
  Subject subject(text, shape);
  if (subject.traits().longest == "horizon") subject.horizon = 2 * kLong;
  return subject;
}

class Contract : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, Contract, ::testing::ValuesIn(subjects()),
                         test_name);

// 1. Full = chunked = step by step.
TEST_P(Contract, AnySplitOfAStreamGivesTheSame) {
  Subject subject = make(GetParam());
  if (!subject.traits().linear_causal) GTEST_SKIP() << "for exact attention alone";
  const c10::InferenceMode no_graph;
  const Tensor x64 = subject.input(2, kLong);
  for (const auto type : {at::kDouble, at::kFloat}) {
    const Tensor x = x64.to(type);
    subject.parameters(type);
    const Tensor whole = subject.attend(x, subject.at(0));
    for (const int64_t piece : {1, 3, 64, 100}) {
      Stream stream;
      std::vector<Tensor> parts;
      for (int64_t begin = 0; begin < kLong; begin += piece)
        parts.push_back(
            subject.attend(x.narrow(1, begin, std::min(piece, kLong - begin)),
                           subject.at(begin), &stream));
      const Tensor error = (at::cat(parts, 2) - whole).abs().max();
      EXPECT_LE((error / whole.abs().max()).item<double>(),
                type == at::kDouble ? 1e-10 : 1e-5)
          << "in pieces of " << piece;
    }
  }
}

TEST_P(Contract, SomeRowsOfScoresAreRowsOfAllScores) {
  Subject subject = make(GetParam());
  if (!subject.traits().exact) GTEST_SKIP() << "for linear attention alone";
  const Tensor x = subject.input(2, kLong);
  const Tensor all = subject.scores(x, x, subject.at(0));
  for (const int64_t begin : {0, 100, 306}) {
    const int64_t rows = std::min<int64_t>(50, kLong - begin);
    Placement at = subject.at(0);
    at.query_start = begin;
    const Tensor some = subject.scores(x.narrow(1, begin, rows), x, at);
    EXPECT_TRUE(at::allclose(some, all.narrow(2, begin, rows), 1e-10, 1e-10));
  }
}

// 2. Causal means causal: not even the length of what comes later shows.
TEST_P(Contract, TheFutureChangesNothing) {
  Subject subject = make(GetParam());
  const Tensor x = subject.input(1, kLong);
  Tensor other = x.clone();
  other.narrow(1, 200, kLong - 200).mul_(-7);
  const Tensor first = subject.attend_somehow(x, subject.at(0)).narrow(2, 0, 200);
  const Tensor again = subject.attend_somehow(other, subject.at(0)).narrow(2, 0, 200);
  const Tensor prefix = subject.attend_somehow(x.narrow(1, 0, 200), subject.at(0));
  EXPECT_TRUE(at::allclose(again, first, 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(prefix, first, 1e-12, 1e-12));
}

// 3. Shift invariance.
TEST_P(Contract, ScoresDependOnTheLagAlone) {
  Subject subject = make(GetParam());
  if (!subject.traits().relative) GTEST_SKIP() << "absolute";
  if (subject.traits().stochastic) GTEST_SKIP() << "in expectation: see below";
  const Tensor xq = subject.input(1, kLong), xk = subject.input(1, 41, 2);
  const Tensor here = subject.scores(xq, xk, subject.at(0));
  for (const int64_t shift : {1, 1000, 1'000'000}) {
    if (shift > 1000 && GetParam().find("scores") != std::string::npos) continue;
    EXPECT_TRUE(
        at::allclose(subject.scores(xq, xk, subject.at(shift)), here, 1e-9, 1e-9))
        << "shifted by " << shift;
  }
}

struct Moments {
  Tensor mean, variance;  // of the mean
};

Moments moments(Subject& subject, const Tensor& xq, const Tensor& xk,
                const Placement& at, uint64_t seed, int draws) {
  Tensor sum, squares;
  for (int i = 0; i < draws; ++i) {
    subject.draw = {.seed = seed, .step = i};
    const Tensor s = subject.scores(xq, xk, at);
    sum = i == 0 ? s.clone() : sum + s;
    squares = i == 0 ? s * s : squares + s * s;
  }
  const Tensor mean = sum / draws;
  return {mean, (squares / draws - mean * mean) / (draws - 1)};
}

TEST_P(Contract, EstimatesDependOnTheLagAloneInExpectation) {
  Subject subject = make(GetParam());
  if (!subject.traits().stochastic || !subject.traits().relative)
    GTEST_SKIP() << "exact: see above";
  const c10::InferenceMode no_graph;
  const Tensor xq = subject.input(1, 3), xk = subject.input(1, 2, 2);
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const Moments here = moments(subject, xq, xk, subject.at(0), seed, 400);
    for (const int64_t shift : {17, 1'000'000}) {
      const Moments there =
          moments(subject, xq, xk, subject.at(shift), seed + 100, 400);
      const Tensor sigma = (here.variance + there.variance).sqrt() + 1e-12;
      const double worst =
          ((here.mean - there.mean) / sigma).abs().max().item<double>();
      EXPECT_LT(worst, 5) << "seed " << seed << ", shifted by " << shift;
    }
  }
}

// 4. Gradients reach every parameter and the input, in every attention it serves.
void expect_gradients(Subject& subject, bool exact, bool causal) {
  SCOPED_TRACE(std::string(causal ? "causal " : "full ") +
               (exact ? "exact" : "linear") + " attention");
  Parameters inputs = subject.parameters();
  inputs.emplace_back("x", subject.input(2, 19).set_requires_grad(true));
  const Tensor x = inputs.back().second;
  const Tensor g = normal({2, 4, 19, 8}, 3);
  const auto loss = [&] {
    const Placement at = subject.at(5, causal);
    return ((exact ? subject.attend_exactly(x, at) : subject.attend(x, at)) * g).sum();
  };
  for (auto& [name, p] : inputs) p.mutable_grad() = Tensor();
  loss().backward();
  for (auto& [name, p] : inputs) {
    ASSERT_TRUE(p.grad().defined()) << name << " gets no gradient";
    const Tensor direction = normal(p.sizes(), 4);
    const double predicted = (p.grad() * direction).sum().item<double>();
    const double h = 1e-6;
    const c10::NoGradGuard moving;
    const Tensor before = p.detach().clone();
    p.copy_(before + h * direction);
    const double up = loss().item<double>();
    p.copy_(before - h * direction);
    const double down = loss().item<double>();
    p.copy_(before);
    const double size = (p.grad().norm() * direction.norm()).item<double>();
    EXPECT_GT(size, 0) << name << " gets a gradient of zero";
    EXPECT_NEAR((up - down) / (2 * h), predicted, 1e-6 * size + 1e-7) << name;
  }
}

TEST_P(Contract, GradientsEqualFiniteDifferences) {
  Subject subject = make(GetParam());
  for (const bool causal : {true, false}) {
    if (subject.traits().exact) expect_gradients(subject, true, causal);
    if (subject.serves_linear(causal)) expect_gradients(subject, false, causal);
  }
}

// 5. Any shape.
TEST_P(Contract, TakesAnyShape) {
  for (const HeadShape& shape :
       {HeadShape{.heads = 3, .dim = 7}, HeadShape{.heads = 1, .dim = 4},
        HeadShape{.heads = 4, .dim = 8}}) {
    Subject subject = make(GetParam(), shape);
    for (const int64_t n : {0, 1, 13}) {
      const Tensor x = subject.input(2, n);
      for (const int64_t m : {0, 1, 17}) {
        if (n + m == 0) continue;  // a table by lag has N + M - 1 columns
        Placement at = subject.at(0, false);
        at.query_start = 20;
        const Tensor s = subject.scores(x, subject.input(2, m, 2), at);
        EXPECT_EQ(s.sizes(), (at::IntArrayRef{2, shape.heads, n, m}));
        EXPECT_TRUE(s.isfinite().all().item<bool>());
      }
      const Tensor out = subject.attend_somehow(x, subject.at(0));
      EXPECT_EQ(out.sizes(), (at::IntArrayRef{2, shape.heads, n, shape.dim}));
    }
    const Tensor q = normal({2, 9, shape.heads, shape.dim}, 1).transpose(1, 2);
    const Encoded strided = subject.encode(q, q, subject.at(3));
    const Encoded dense = subject.encode(q.contiguous(), q.contiguous(), subject.at(3));
    EXPECT_TRUE(at::allclose(strided.q, dense.q, 1e-13, 1e-13));
    EXPECT_EQ(strided.q.size(3), subject.encoding().width());
    EXPECT_EQ(strided.k.size(3), subject.encoding().width());
  }
}

// 6. No NaN.
TEST_P(Contract, SilentInputsGiveFiniteOutputs) {
  Subject subject = make(GetParam());
  const Tensor x = at::zeros({1, 20, 32}, at::kDouble);
  EXPECT_TRUE(subject.attend_somehow(x, subject.at(0)).isfinite().all().item<bool>());
}

// 7. Same bits for any number of threads.
TEST_P(Contract, GivesTheSameBitsForAnyNumberOfThreads) {
  Subject subject = make(GetParam());
  const Tensor x = subject.input(2, kLong).to(at::kFloat);
  const Tensor q = subject.heads(x), k = subject.keys(x);
  at::get_num_threads();  // lets ATen set its default first
  omp_set_num_threads(1);
  const Encoded one = subject.encode(q, k, subject.at(9));
  for (const int threads : {2, 4}) {
    omp_set_num_threads(threads);
    const Encoded more = subject.encode(q, k, subject.at(9));
    EXPECT_TRUE(at::equal(more.q, one.q)) << threads << " threads";
    EXPECT_TRUE(at::equal(more.k, one.k)) << threads << " threads";
  }
  omp_set_num_threads(1);
}

// 8. Position matters.
TEST_P(Contract, TheOrderOfThePastMattersUnlessThereAreNoPositions) {
  Subject subject = make(GetParam());
  const Tensor x = subject.input(1, 30);
  const Tensor swapped =
      x.index_select(1, at::cat({at::arange(28, -1, -1), at::tensor({29})}));
  const Tensor last = subject.attend_somehow(x, subject.at(0)).narrow(2, 29, 1);
  const Tensor after = subject.attend_somehow(swapped, subject.at(0)).narrow(2, 29, 1);
  EXPECT_EQ(at::allclose(last, after, 1e-9, 1e-9), GetParam() == "none");
}

// What an encoding says of itself is what it does.
TEST_P(Contract, HandsOverWhatItsTraitsSay) {
  Subject subject = make(GetParam());
  const Traits& traits = subject.traits();
  EXPECT_TRUE(traits.exact || traits.linear_causal || traits.linear_full);
  const Tensor x = subject.input(1, 20), q = subject.heads(x);
  const Encoded e = subject.encode(q, q, subject.at(3));
  const bool embeds = !at::equal(subject.encoding().embed(x, subject.at(3)), x);
  const bool encodes = e.q.sizes() != q.sizes() || !at::equal(e.q, q);
  EXPECT_EQ(embeds, traits.stage == Traits::Stage::input && GetParam() != "none");
  if (traits.stage != Traits::Stage::score) {
    EXPECT_EQ(encodes, traits.stage != Traits::Stage::input);
  }
  EXPECT_EQ(e.lag_bias.defined(), traits.by_lag);
  EXPECT_EQ(e.decay.defined(), traits.decays);
  if (e.decay.defined()) {
    EXPECT_TRUE(traits.linear_causal);
    EXPECT_TRUE(traits.by_lag || (!traits.exact && !traits.linear_full))
        << "only causal linear attention reads a decay";
    EXPECT_TRUE(e.decay.le(0).all().item<bool>());
  }
  if (e.decay.defined() && e.lag_bias.defined()) {  // one kernel
    const Tensor lag = at::arange(-19, 20, at::kDouble);
    EXPECT_TRUE(at::allclose(e.lag_bias, e.decay.unsqueeze(1) * lag.abs()));
  }
  if (e.lag_keys.defined() || e.lag_values.defined()) {
    EXPECT_FALSE(traits.linear_causal || traits.linear_full)
        << "what a query makes of a lag does not weigh features";
  }
  if (traits.linear_full) {
    const Tensor out = subject.attend(x, subject.at(0, false));
    EXPECT_TRUE(out.isfinite().all().item<bool>());
  }
  EXPECT_GT(e.scale, 0);
  subject.draw = {.seed = 2, .step = 7};
  const Encoded another = subject.encode(q, q, subject.at(3));
  EXPECT_EQ(!at::equal(another.q, e.q), traits.stochastic);
}

TEST_P(Contract, ReachesAsFarAsItSays) {
  Subject subject(GetParam());
  const std::string& longest = subject.traits().longest;
  const Tensor x = subject.input(1, 3);
  const auto far = [&] { return subject.attend_somehow(x, subject.at(1'000'000)); };
  const auto far_apart = [&] {
    Placement at = subject.at(0);
    at.query_start = 1'000'000;
    return subject.scores(x, x, at);
  };
  if (longest == "unbounded") {
    if (GetParam().find("xpos=scores") != std::string::npos) return;
    EXPECT_TRUE(far().isfinite().all().item<bool>());
    EXPECT_TRUE(far_apart().isfinite().all().item<bool>());
  } else if (longest == "table") {  // of positions, or of lags
    EXPECT_THROW(far_apart(), std::invalid_argument);
  } else {
    ASSERT_EQ(longest, "horizon");
    EXPECT_THROW(far(), std::invalid_argument);
    subject.horizon = 2'000'000;
    EXPECT_TRUE(far().isfinite().all().item<bool>());
  }
}

TEST_P(Contract, TakesGridsOfAsManyAxesAsItSays) {
  Subject subject = make(GetParam(), {.heads = 2, .dim = 24});
  const int64_t dims = subject.traits().dims;
  ASSERT_GE(dims, 1);
  Placement at = subject.at(0, false);
  // A row without a place stands before a picture, or has nothing added to it.
  const bool on_input =
      subject.traits().stage == Traits::Stage::input && !subject.traits().by_lag;
  at.off_grid = dims > 1 || on_input ? 1 : 0;
  const Tensor x = subject.input(1, 16 + at.off_grid);
  for (at.grid = {16}; static_cast<int64_t>(at.grid.size()) <= dims;) {
    const Tensor s = subject.scores(x, x, at);
    EXPECT_TRUE(s.isfinite().all().item<bool>()) << at.grid.size() << " axes";
    at.grid.back() /= 2;
    at.grid.push_back(2);
  }
  const bool placeless =
      GetParam() == "none" || subject.traits().stage == Traits::Stage::score;
  if (placeless) return;
  EXPECT_THROW(subject.scores(x, x, at), std::invalid_argument);
}

TEST_P(Contract, RefusesAnUnknownOptionAndListsTheLegalOnes) {
  const std::string text = GetParam() +
                           (GetParam().find(':') == std::string::npos ? ":" : ",") +
                           "no_such_option=1";
  try {
    make_encoding(text, {.heads = 4, .dim = 8});
    FAIL() << "accepted " << text;
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("unknown option 'no_such_option'"), std::string::npos) << what;
    EXPECT_TRUE(what.find("its options are") != std::string::npos ||
                what.find("it takes no options") != std::string::npos)
        << what;
  }
}

}  // namespace
}  // namespace lagwise
