// ConvSPE in `lagwise bench encodings`: ours against the authors' algorithm, and a step
// of decoding far out against one near the start.

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <memory>

#include "bench/encoding_cases.h"
#include "bench/materialised_conv_spe.h"
#include "lagwise/encodings/encoding.h"

namespace lagwise::bench {
namespace {

using at::Tensor;

/// A share of the matrix product's rate, as in floors.cpp, at N = 1024 and two threads:
/// on one the baseline reached 0.109.
constexpr double kFloor = 0.065;

struct Subject {
  explicit Subject(const std::string& text, int64_t n)
      : encoding(make_encoding(text, {.heads = kHeads, .dim = kWidth})),
        layer{0, 1, encoding->layer(0, 1)},
        q(at::randn({1, kHeads, n, kWidth}, at::kFloat)),
        k(at::randn({1, kHeads, n, kWidth}, at::kFloat)) {}

  std::vector<Tensor> leaves() const {
    std::vector<Tensor> all = {q, k};
    for (const auto& [name, x] : encoding->shared()) all.push_back(x);
    for (const auto& [name, x] : layer.own) all.push_back(x);
    return all;
  }
  std::tuple<Tensor, Tensor> ours() const {
    const Encoded x = encode_once(*encoding, q, k, {}, {.seed = 1}, &layer);
    return {x.q, x.k};
  }
  std::tuple<Tensor, Tensor> theirs() const {
    const auto kernels = encoding->shared();
    const Tensor gate = layer.own.empty() ? Tensor() : layer["gate"];
    return materialised_conv_spe(q, k, kernels[0].second, kernels[1].second, gate,
                                 kRealizations);
  }

  std::unique_ptr<Encoding> encoding;
  Layer layer;
  Tensor q, k;
};

using SubjectPtr = std::shared_ptr<Subject>;

Call forward(const SubjectPtr& subject, bool ours) {
  return [=]() -> std::vector<Tensor> {
    const c10::NoGradGuard no_graph;
    const auto [q, k] = ours ? subject->ours() : subject->theirs();
    return {q, k};
  };
}

Call both(const SubjectPtr& subject, bool ours) {
  return [=]() -> std::vector<Tensor> {
    const at::AutoGradMode on(true);
    for (Tensor x : subject->leaves()) {
      x.set_requires_grad(true);
      x.mutable_grad() = Tensor();
    }
    const auto [q, k] = ours ? subject->ours() : subject->theirs();
    (q.sum() + k.sum()).backward();
    return {q.detach(), k.detach()};
  };
}

/// The next token of a stream that has reached `position`.
Call step_from(const SubjectPtr& subject, int64_t position) {
  const auto code = std::make_shared<Code>();
  const auto next = std::make_shared<int64_t>(position);
  return [=]() -> std::vector<Tensor> {
    const c10::NoGradGuard no_graph;
    Placement at;
    at.query_start = at.key_start = (*next)++;
    *code = subject->encoding->code(at, {.seed = 1}, 1, 1, code.get());
    const Encoded x =
        subject->encoding->encode(subject->q, subject->k, *code, subject->layer, at);
    return {x.q, x.k};
  };
}

void conv_spe_cases(Comparer& comparer, int threads) {
  const int64_t n = comparer.quick() ? 256 : 1024;
  const Shape shape{n, kHeads, kWidth, kRealizations};
  // Useful work: taps and product, 2 flops each for either side.
  const double gflop = 1e-9 * 4 * 129 * double(n * kHeads * kWidth * kRealizations);
  for (const std::string noise : {"gaussian", "sign"}) {
    const auto subject = std::make_shared<Subject>("conv_spe:noise=" + noise, n);
    const double floor = n == 1024 && threads == 2 ? kFloor : 0;
    comparer.measure(
        {.name = "conv_spe " + noise + ", kernel 128, gated",
         .direction = "forward",
         .shape = shape,
         .threads = threads,
         .ours = forward(subject, true),
         .baselines = {{"materialised", forward(subject, false), threads, 1, floor}},
         .gflop = gflop});
  }
  // The baseline takes ten times as long back as there: a shorter sequence will do.
  const auto subject = std::make_shared<Subject>("conv_spe", 256);
  comparer.measure({.name = "conv_spe gaussian, kernel 128, gated",
                    .direction = "forward+backward",
                    .shape = {256, kHeads, kWidth, kRealizations},
                    .threads = threads,
                    .ours = both(subject, true),
                    .baselines = {{"materialised", both(subject, false), threads}},
                    .gflop = 3 * gflop * 256 / double(n)});
  const auto token = std::make_shared<Subject>("conv_spe", 1);
  comparer.measure({.name = "conv_spe step at position 1000000 (cost: over 1000)",
                    .direction = "step",
                    .shape = {1, kHeads, kWidth, kRealizations},
                    .threads = threads,
                    .ours = step_from(token, 1'000'000),
                    .baselines = {{"position_1000", step_from(token, 1000), threads}},
                    .is_cost = true});
}

const RegisterEncodingCases registered("conv_spe", conv_spe_cases);

}  // namespace
}  // namespace lagwise::bench
