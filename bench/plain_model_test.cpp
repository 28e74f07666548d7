#include "bench/plain_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench/memory.h"
#include "bench/train_cases.h"

namespace lagwise::bench {
namespace {

ModelConfig small_config() {
  ModelConfig config = small_bench_model(48);
  config.layers = 2, config.dim = 16, config.heads = 2, config.feed_forward = 24;
  config.vocabulary = 11;
  config.encoding = "sine_spe:sines=3,realizations=8,gated=true";
  return config;
}

Batch batch_of(int64_t rows, int64_t n, int64_t vocabulary) {
  at::manual_seed(3);
  Batch batch;
  batch.tokens = at::randint(vocabulary, {rows, n}, at::kLong);
  batch.targets = at::randint(vocabulary, {rows, n}, at::kLong);
  return batch;
}

// A baseline that computes something else, or less, would be no baseline.
TEST(PlainModel, ComputesAndTrainsWhatOursDoes) {
  const ModelConfig config = small_config();
  const auto ours = make_model(config), plain = make_model(plain_model(config));
  const Batch batch = batch_of(3, 150, 11);  // more than one chunk of 128
  Draw draw;
  draw.given = {{"sine_spe.z", at::randn({1, 2, 8, 6, 8})},
                {"sine_spe.gate", at::randn({2, 8, 8})}};
  const Loss a = ours->loss(batch, draw), b = plain->loss(batch, draw);
  EXPECT_TRUE(at::allclose(a.by_target, b.by_target, 1e-4, 1e-5));
  a.sum.backward(), b.sum.backward();
  const auto x = ours->named_parameters(), y = plain->named_parameters();
  ASSERT_EQ(x.keys(), y.keys());
  for (const auto& item : x) {
    const at::Tensor want = item.value().grad(), got = y[item.key()].grad();
    ASSERT_TRUE(want.defined() && got.defined()) << item.key();
    const double size = want.abs().max().item<double>();
    EXPECT_GT(size, 0) << item.key();
    EXPECT_LE((want - got).abs().max().item<double>(), 1e-3 * size) << item.key();
  }
}

TEST(PlainModel, NeedsAtLeastTheMemoryItIsSaidTo) {
  ModelConfig config = small_config();
  config.encoding = "sine_spe:sines=3,realizations=64,gated=true";
  const auto plain = make_model(plain_model(config));
  const Batch batch = batch_of(2, 256, 11);
  const int64_t measured = extra_bytes([&]() -> std::vector<at::Tensor> {
    plain->loss(batch, {}).sum.backward();
    return {};
  });
  const int64_t said = plain_step_bytes(config, 2, 256);
  EXPECT_GE(measured, said);
  EXPECT_LE(measured, 2 * said);
}

TEST(PlainModel, RefusesOtherEncodings) {
  ModelConfig config = small_config();
  config.encoding = "none";
  EXPECT_THROW(plain_model(config), std::invalid_argument);
}

TEST(TrainCases, SayWhyABaselineWasNotRun) {
  TrainPlan plan;
  plan.quick = true, plan.lengths = {256}, plan.threads = 1;
  plan.most_bytes = 1 << 20;
  int seen = 0;
  plan.row = [&](const BenchRow&) { ++seen; };
  const std::vector<BenchRow> rows = run_train_cases(plan);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(seen, 6);
  for (const BenchRow& row : rows) {
    EXPECT_NE(row.note.find("1.0 MB are free"), std::string::npos) << row.note;
    EXPECT_EQ(row.baseline_ms, 0);
    EXPECT_GT(row.ours_ms, 0);
    EXPECT_GT(row.fraction, 0);
#if !defined(__SANITIZE_ADDRESS__)  // which slows down what measures the peak
    EXPECT_LT(row.fraction, 1);
#endif
  }
}

TEST(TrainCases, TimeEachEncodingAgainstItsBaseline) {
  TrainPlan plan;
  plan.quick = true, plan.lengths = {512}, plan.threads = 1;
  std::vector<std::string> baselines;
  for (const BenchRow& row : run_train_cases(plan)) {
    baselines.push_back(row.baseline);
    EXPECT_EQ(row.d, row.baseline == "materialised" ? 64 : row.e);
    EXPECT_GT(row.ratio, 0);
    EXPECT_GT(row.extra_bytes, 0);
    EXPECT_GT(row.baseline_bytes, 0);
  }
  EXPECT_EQ(baselines,
            (std::vector<std::string>{"materialised", "torch_chunked", "f32",
                                      "materialised", "torch_chunked", "f32"}));
  plan.only = "rope", plan.recompute = true;
  for (const BenchRow& row : run_train_cases(plan)) {
    EXPECT_EQ(row.baseline, "torch_chunked");
    EXPECT_NE(row.name.find("recompute"), std::string::npos) << row.name;
  }
}

// By hand: 4 layers of 6 (4 512^2 + 2 512 2048), 8 heads of 4 x 2 x 11 x 64 x 64 and
// of 14 x 64 x 64, and the logits.
TEST(TrainCases, CountMatrixWork) {
  EXPECT_EQ(matrix_flops(bench_model(512)),
            4.0 * (18874368 + 8 * 360448 + 8 * 57344) + 786432);
  EXPECT_EQ(matrix_flops(with_rope(bench_model(512))),
            4.0 * (18874368 + 8 * 57344) + 786432);
  // 3 layers of 6 (4 64^2 + 2 64 256) and 4 heads of 14 x 16 x 16, and the logits.
  EXPECT_EQ(matrix_flops(with_rope(small_bench_model(256))),
            3.0 * (294912 + 4 * 3584) + 98304);
}

}  // namespace
}  // namespace lagwise::bench
