#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

using at::Tensor;
namespace fs = std::filesystem;

Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  const Tensor x = at::empty(sizes, at::kDouble);
  Noise(seed).at({}).fill_normal<double>(
      0, {x.data_ptr<double>(), static_cast<size_t>(x.numel())});
  return x;
}

/// An encoding whose parameters are f64, and one layer of it.
struct Made {
  Made(const std::string& text, const HeadShape& shape, int64_t index = 0)
      : encoding(make_encoding(text, shape)),
        layer{index, 1, encoding->layer(index, 1)} {
    for (auto& [name, x] : encoding->shared()) x.set_data(x.to(at::kDouble));
    for (auto& [name, x] : layer.own) x.set_data(x.to(at::kDouble));
  }
  Tensor parameter(const std::string& name) {
    for (auto& [key, x] : encoding->shared())
      if (key == name) return x;
    return layer[name];
  }
  Encoded encode(const Tensor& q, const Tensor& k, const Placement& at,
                 const Draw& draw = {}) {
    return encode_once(*encoding, q, k, at, draw, &layer);
  }

  std::unique_ptr<Encoding> encoding;
  Layer layer;
};

double worst(const Tensor& got, const Tensor& want) {
  return (got - want).abs().max().item<double>() /
         (want.abs().max().item<double>() + 1e-300);
}

// ---- the authors' numbers

/// An f64 .npy file in C order.
Tensor read_npy(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(10, '\0');
  file.read(magic.data(), 10);
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(magic[i]); };
  std::string header(byte(8) + 256u * byte(9), '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  std::vector<int64_t> sizes;
  std::istringstream shape(header.substr(header.find("'shape': (") + 10));
  for (int64_t size; shape >> size; shape.ignore(1)) sizes.push_back(size);
  const Tensor x = at::empty(sizes, at::kDouble);
  file.read(static_cast<char*>(x.data_ptr()), x.numel() * 8);
  EXPECT_TRUE(file && header.find("<f8") != std::string::npos) << path;
  return x;
}

/// (B, *size, H, D) as [B, H, N, D].
Tensor rows(const Tensor& x) {
  return x.reshape({x.size(0), -1, x.size(-2), x.size(-1)}).transpose(1, 2);
}

struct GoldenCase {
  const char* name;
  HeadShape shape;
  const char* kernel;
  int realizations;
  std::vector<int64_t> grid;
};

void expect_golden(const GoldenCase& c, const fs::path& folder, bool gated) {
  SCOPED_TRACE(std::string(c.name) + (gated ? " gated" : " ungated"));
  const auto read = [&](const std::string& name) {
    return read_npy(folder / (name + ".npy"));
  };
  Made made("conv_spe:kernel=" + std::string(c.kernel) + ",realizations=" +
                std::to_string(c.realizations) + ",gated=" + (gated ? "true" : "false"),
            c.shape);
  std::vector<std::pair<Tensor, std::string>> leaves;
  const auto leaf = [&](Tensor x, const Tensor& value, const std::string& name) {
    x.set_data(value.clone());
    x.set_requires_grad(true);
    leaves.emplace_back(x, "d_" + name + (gated ? "_g" : "_u"));
  };
  // Crossed: the authors' conv_k makes the code of queries.
  leaf(made.parameter("query_kernel"), read("conv_k_weight"), "conv_k_weight");
  leaf(made.parameter("key_kernel"), read("conv_q_weight"), "conv_q_weight");
  if (gated) leaf(made.parameter("gate"), read("gate_raw"), "gate");
  const Tensor queries = read("queries"), keys = read("keys");
  Tensor q = at::empty({0}, at::kDouble), k = at::empty({0}, at::kDouble);
  leaf(q, queries, "queries");
  leaf(k, keys, "keys");
  Draw draw;
  draw.given = {{"conv_spe.z", read("z")}, {"conv_spe.gate", read("gate_noise")}};
  Placement at;
  at.grid = c.grid;
  const Encoded got = made.encode(rows(q), rows(k), at, draw);
  const std::string suffix = gated ? "_g" : "_u";
  EXPECT_LT(worst(got.q, rows(read("qhat" + suffix))), 1e-12);
  EXPECT_LT(worst(got.k, rows(read("khat" + suffix))), 1e-12);
  ((got.q * rows(read("grad_qhat"))).sum() + (got.k * rows(read("grad_khat"))).sum())
      .backward();
  for (const auto& [x, name] : leaves)
    EXPECT_LT(worst(x.grad(), read(name)), 1e-9) << name;
}

TEST(ConvSpeEncoding, EqualsTheAuthorsNumbers) {
  const char* const folder = std::getenv("LAGWISE_GOLDEN");
  if (folder == nullptr || !fs::exists(fs::path(folder) / "spe" / "conv1d"))
    GTEST_SKIP() << "no golden tensors: set LAGWISE_GOLDEN to their folder";
  for (const GoldenCase& c : std::vector<GoldenCase>{
           {"conv1d", {.heads = 2, .dim = 3}, "5", 4, {}},
           {"conv1d_even", {.heads = 1, .dim = 2}, "4", 3, {}},
           {"conv2d", {.heads = 2, .dim = 2}, "3x2", 3, {3, 4}},
           {"conv2d_truncated", {.heads = 1, .dim = 2}, "2x2", 3, {2, 3}},
           {"conv3d", {.heads = 1, .dim = 2}, "2x1x2", 2, {2, 2, 3}}})
    for (const bool gated : {false, true})
      expect_golden(c, fs::path(folder) / "spe" / c.name, gated);
}

// ---- what it estimates

/// The expected kernel of lag, by its definition, (1 - g) sum_j a[j] b[j + lag] + g.
double expected_template(Made& made, int64_t d, int64_t lag, double gate) {
  const Tensor a = made.parameter("query_kernel"), b = made.parameter("key_kernel");
  double sum = 0;
  for (int64_t j = 0; j < a.size(2); ++j)
    if (j + lag >= 0 && j + lag < a.size(2))
      sum += a[d][0][j].item<double>() * b[d][0][j + lag].item<double>();
  return (1 - gate) * sum + gate;
}

/// <q'_n, k'_m> / sqrt(R) over many draws against D^(-1/2) c with the standard error
/// sqrt((s_q^2 s_k^2 + c^2) / (R D draws)), which bounds that of signs as well.
void expect_unbiased(const std::string& options, bool gated) {
  constexpr int64_t kN = 12, kD = 2, kR = 16, kDraws = 400;
  Made made("conv_spe:kernel=5,realizations=16," + options, {.heads = 1, .dim = kD});
  const Tensor q = normal({1, 1, kN, kD}, 1), k = normal({1, 1, kN, kD}, 2);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Tensor sum = at::zeros({kN, kN}, at::kDouble), squares = sum.clone();
    for (int64_t i = 0; i < kDraws; ++i) {
      Draw draw;
      draw.seed = seed, draw.step = i;
      const Encoded x = made.encode(q, k, {}, draw);
      const Tensor score = at::matmul(x.q, x.k.transpose(2, 3))[0][0] * x.scale;
      sum += score, squares += score * score;
    }
    for (int64_t n = 0; n < kN; ++n)
      for (int64_t m = 0; m < kN; ++m) {
        double c = 0, s_q = 0, s_k = 0;
        for (int64_t d = 0; d < kD; ++d) {
          const double g =
              gated ? made.parameter("gate")[0][d].sigmoid().item<double>() : 0;
          const double x = q[0][0][n][d].item<double>(),
                       y = k[0][0][m][d].item<double>();
          const auto variance = [&](const char* name) {
            return (1 - g) * made.parameter(name)[d].square().sum().item<double>() + g;
          };
          c += x * y * expected_template(made, d, n - m, g);
          s_q += x * x * variance("query_kernel"),
              s_k += y * y * variance("key_kernel");
        }
        const double error = std::sqrt((s_q * s_k + c * c) / (kR * kD * kDraws));
        const double mean = sum[n][m].item<double>() / kDraws;
        ASSERT_NEAR(mean, c / std::sqrt(double{kD}), 5 * error) << n << " " << m;
        if (options.find("sign") != std::string::npos) continue;
        // The variance itself, to 5 sigma of a product of normals (excess at most 6).
        const double variance = squares[n][m].item<double>() / kDraws - mean * mean;
        const double want = error * error * kDraws;
        ASSERT_NEAR(variance, want, 5 * want * std::sqrt(8.0 / kDraws))
            << n << " " << m;
      }
  }
}

TEST(ConvSpeEncoding, EstimatesItsTemplateWithTheKnownVariance) {
  expect_unbiased("gated=false", false);
  expect_unbiased("gated=true", true);
}

TEST(ConvSpeEncoding, IsUnbiasedWithSignsToo) {
  expect_unbiased("gated=false,noise=sign", false);
  expect_unbiased("gated=true,noise=sign", true);
}

TEST(ConvSpeEncoding, BeginsWithATriangleOfHeightHalf) {
  Made made("conv_spe:kernel=32,gated=false", {.heads = 4, .dim = 64});
  for (int64_t lag : {0, 8, 24, 40}) {
    double mean = 0;
    for (int64_t d = 0; d < 256; ++d) mean += expected_template(made, d, lag, 0) / 256;
    const double want = lag < 32 ? 0.5 * (1 - static_cast<double>(lag) / 32) : 0;
    EXPECT_NEAR(mean, want, 0.03) << lag;
  }
}

// ---- streams

/// Codes `cuts` of a sequence one after another, handing on the code.
Tensor streamed(Made& made, const Tensor& q, const Tensor& k, int64_t start,
                const std::vector<int64_t>& cuts, bool keys) {
  Code previous;
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t end : cuts) {
    Placement at;
    at.query_start = at.key_start = start + begin;
    previous =
        made.encoding->code(at, {.seed = 9}, end - begin, end - begin, &previous);
    const Encoded x = made.encoding->encode(
        q.slice(2, begin, end), k.slice(2, begin, end), previous, made.layer, at);
    parts.push_back(keys ? x.k : x.q);
    begin = end;
  }
  return at::cat(parts, 2);
}

TEST(ConvSpeEncoding, StreamsToTheSameBitsWhenDirect) {
  // Ungated: the gate's share is a matrix product of ATen, to the last bit or so.
  Made made("conv_spe:kernel=7,realizations=20,gated=false,method=direct",
            {.heads = 2, .dim = 3});
  const Tensor q = normal({1, 2, 120, 3}, 1), k = normal({1, 2, 120, 3}, 2);
  std::vector<int64_t> one_by_one, mixed = {3, 4, 9, 15, 16, 60, 61, 62, 120};
  for (int64_t i = 1; i <= 120; ++i) one_by_one.push_back(i);
  for (const int64_t start : {int64_t{0}, int64_t{1'000'000}}) {
    Placement at;
    at.query_start = at.key_start = start;
    const Encoded whole = made.encode(q, k, at, {.seed = 9});
    for (const auto& cuts : {one_by_one, mixed}) {
      EXPECT_TRUE(at::equal(streamed(made, q, k, start, cuts, false), whole.q));
      EXPECT_TRUE(at::equal(streamed(made, q, k, start, cuts, true), whole.k));
    }
  }
}

TEST(ConvSpeEncoding, StreamsToTheSameNumbersByAnyMethod) {
  Made made("conv_spe:kernel=40,realizations=5", {.heads = 1, .dim = 2});
  const Tensor q = normal({1, 1, 90, 2}, 1);
  const Encoded whole = made.encode(q, q, {}, {.seed = 9});
  EXPECT_LT(worst(streamed(made, q, q, 0, {60, 61, 62, 90}, false), whole.q), 1e-12);
}

// Token by token without gradients a row is filtered once for all layers.
TEST(ConvSpeEncoding, StreamsToTheSameNumbersTokenByToken) {
  const c10::NoGradGuard no_graph;
  for (const char* gated : {"true", "false"}) {
    Made made("conv_spe:kernel=9,realizations=21,gated=" + std::string(gated),
              {.heads = 3, .dim = 5}, 1);
    const Tensor q = normal({2, 3, 60, 5}, 1), k = normal({2, 3, 60, 5}, 2);
    std::vector<int64_t> prompt_first = {20, 23}, one_by_one;
    for (int64_t i = 24; i <= 60; ++i) prompt_first.push_back(i);
    for (int64_t i = 1; i <= 60; ++i) one_by_one.push_back(i);
    for (const int64_t start : {int64_t{0}, int64_t{1'000'000}}) {
      Placement at;
      at.query_start = at.key_start = start;
      const Encoded whole = made.encode(q, k, at, {.seed = 9});
      for (const auto& cuts : {one_by_one, prompt_first}) {
        EXPECT_LT(worst(streamed(made, q, k, start, cuts, false), whole.q), 1e-12);
        EXPECT_LT(worst(streamed(made, q, k, start, cuts, true), whole.k), 1e-12);
      }
    }
  }
}

TEST(ConvSpeEncoding, GivesEveryLayerOfAStreamItsOwnGate) {
  const c10::NoGradGuard no_graph;
  const auto encoding =
      make_encoding("conv_spe:kernel=4,realizations=6", {.heads = 2, .dim = 3});
  const Tensor q = normal({1, 2, 1, 3}, 1).to(at::kFloat);
  Code none;
  const Code code = encoding->code({}, {.seed = 9}, 1, 1, &none);
  for (const int64_t i : {0, 1, 2}) {
    const Layer layer{i, 3, encoding->layer(i, 3)};
    const Tensor want = encode_once(*encoding, q, q, {}, {.seed = 9}, &layer).q;
    EXPECT_LT(worst(encoding->encode(q, q, code, layer, {}).q, want), 1e-6) << i;
    const Code later = encoding->code({}, {.seed = 9}, 1, 1, &code);
    EXPECT_LT(worst(encoding->encode(q, q, later, layer, {}).q, want), 1e-6) << i;
  }
}

TEST(ConvSpeEncoding, KeepsOldCodesOfAStreamUsable) {
  Made made("conv_spe:kernel=7,realizations=4", {.heads = 1, .dim = 2});
  const Tensor q = normal({1, 1, 1, 2}, 1);
  Code first;
  first = made.encoding->code({}, {.seed = 9}, 1, 1, &first);
  const Tensor before = made.encoding->encode(q, q, first, made.layer, {}).q;
  Code next = first;
  for (int64_t i = 1; i < 200; ++i) {
    Placement at;
    at.query_start = at.key_start = i;
    next = made.encoding->code(at, {.seed = 9}, 1, 1, &next);
  }
  EXPECT_TRUE(at::equal(made.encoding->encode(q, q, first, made.layer, {}).q, before));
}

// ---- the rest of the contract

TEST(ConvSpeEncoding, HasAGateWhoseGradientEqualsDifferences) {
  Made made("conv_spe:kernel=3x2,realizations=6", {.heads = 2, .dim = 3});
  Placement at;
  at.grid = {3, 4};
  at.off_grid = 1;
  const Tensor q = normal({2, 2, 13, 3}, 1), k = normal({2, 2, 13, 3}, 2),
               g = normal({2, 2, 13, 6}, 3);
  const auto loss = [&] {
    const Encoded x = made.encode(q, k, at, {.seed = 4});
    return (x.q * g).sum() + (x.k * g.flip(2)).sum();
  };
  for (const char* name : {"gate", "query_kernel", "key_kernel"}) {
    Tensor x = made.parameter(name);
    x.set_requires_grad(true);
    loss().backward();
    const Tensor slope = x.grad().clone(), u = normal(x.sizes(), 7);
    x.set_requires_grad(false);
    const Tensor kept = x.clone();
    const double h = 1e-6;
    x.copy_(kept + h * u);
    const double more = loss().item<double>();
    x.copy_(kept - h * u);
    const double less = loss().item<double>();
    x.copy_(kept);
    EXPECT_NEAR((slope * u).sum().item<double>(), (more - less) / (2 * h), 1e-7)
        << name;
  }
}

TEST(ConvSpeEncoding, LeavesRowsOffTheGridWithoutAPosition) {
  Made made("conv_spe:kernel=2x2,realizations=8", {.heads = 1, .dim = 3});
  Placement at;
  at.grid = {2, 3};
  const Tensor q = normal({1, 1, 8, 3}, 1);
  const Encoded plain = made.encode(q.slice(2, 2), q.slice(2, 2), at, {.seed = 2});
  at.off_grid = 2;
  const Encoded x = made.encode(q, q, at, {.seed = 2});
  EXPECT_TRUE(at::equal(x.q.slice(2, 2), plain.q));
  const Tensor swapped =
      at::cat({q.slice(2, 1, 2), q.slice(2, 0, 1), q.slice(2, 2)}, 2);
  const Encoded y = made.encode(swapped, swapped, at, {.seed = 2});
  EXPECT_LT(worst(y.q[0][0][0], x.q[0][0][1]), 1e-14);
}

TEST(ConvSpeEncoding, DrawsAnewForEachMomentAndLayer) {
  Made made("conv_spe:kernel=3,realizations=4", {.heads = 1, .dim = 2});
  const Tensor q = normal({1, 1, 5, 2}, 1);
  const Tensor first = made.encode(q, q, {}, {.seed = 1}).q;
  EXPECT_TRUE(at::equal(made.encode(q, q, {}, {.seed = 1}).q, first));
  EXPECT_FALSE(at::equal(made.encode(q, q, {}, {.seed = 1, .step = 1}).q, first));
  made.layer.index = 1;  // the gate's noise is the layer's own
  EXPECT_FALSE(at::equal(made.encode(q, q, {}, {.seed = 1}).q, first));
}

TEST(ConvSpeEncoding, GivesTheSameBitsOnAnyNumberOfThreads) {
  Made made("conv_spe:kernel=40,realizations=24", {.heads = 3, .dim = 8});
  const Tensor q = normal({2, 3, 307, 8}, 1);
  const int threads = at::get_num_threads();
  Tensor first;
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    const Tensor got = made.encode(q, q, {}, {.seed = 1}).q;
    if (!first.defined()) first = got;
    EXPECT_TRUE(at::equal(got, first)) << count;
  }
  at::set_num_threads(threads);
}

TEST(ConvSpeEncoding, RefusesWhatItCannotDo) {
  const HeadShape shape{.heads = 1, .dim = 2};
  for (const char* text :
       {"conv_spe:kernel=0", "conv_spe:kernel=3x", "conv_spe:kernel=2x2x2x2",
        "conv_spe:kernel=wide", "conv_spe:realizations=0", "conv_spe:noise=pink",
        "conv_spe:kernel=3x3,method=fourier", "conv_spe:width=3"})
    EXPECT_THROW(make_encoding(text, shape), std::invalid_argument) << text;
  Made made("conv_spe:kernel=3x3,realizations=4", shape);
  const Tensor q = normal({1, 1, 6, 2}, 1);
  EXPECT_THROW(made.encode(q, q, {}), std::invalid_argument);
  Made line("conv_spe:kernel=3,realizations=4", shape);
  Placement at;
  at.query_at = at::arange(6);
  EXPECT_THROW(line.encode(q, q, at), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
