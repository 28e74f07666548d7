#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/comparison.h"
#include "lagwise/models/model.h"

namespace lagwise::bench {

struct TrainPlan {
  int threads = 2;
  std::vector<int64_t> lengths = {512, 2048, 8192};
  std::string only;             ///< of sine_spe, rope, bf16; empty: all
  bool recompute = false;       ///< ours keeps less: train.recompute
  bool quick = false;           ///< one repetition, a sixteenth of every length
  double longest_seconds = 20;  ///< of all repetitions of a row, about
  int64_t most_bytes = 0;       ///< 0: what the machine has left
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<void(const BenchRow&)> row = [](const BenchRow&) {};  ///< as they come
};

/// The model whose training is timed: decoder_lm, 4 layers, C = 512, H = 8,
/// feed-forward 2048, bytes, SineSPE as in the paper (gated, 64 gaussian realizations,
/// 5 sines), causal linear attention with elu + 1.
ModelConfig bench_model(int64_t n);

/// The small one that two cores can train in minutes: 3 layers, C = 64, H = 4.
ModelConfig small_bench_model(int64_t n);

/// The same model with RoPE and a fixed decay instead, as `recipes/demo/rope.toml` has
/// them: no feature map, no denominator, a norm of each head's output.
ModelConfig with_rope(ModelConfig config);

/// The matrix work of a training step on one token, in flops. Two for a multiply-add:
///
///     dense      6 (4 C C + 2 C F) a layer and 6 C V for the logits: forward, and the
///                gradients of inputs and weights
///     sine_spe   2 x 2 (2K+1) D R a head, forward, and as much backward: [q_d w_d] Z
///     attention  4 R E a head forward and 10 R E backward, as a recurrence would need;
///                with RoPE R = D, since it makes no features
///
/// Not counted: what chunks of attention compute beyond the recurrence, rotations,
/// norms, GELU, softmax, noise, the optimiser.
double matrix_flops(const ModelConfig& config);

/// Whole steps (forward, backward, AdamW) of `bench_model` at every length, batch 4,
/// and of `small_bench_model` at N = 256, batch 16, one thread. The baselines:
///
///     materialised   of SineSPE: its codes as tensors (plain_model.h)
///     torch_chunked  of RoPE with decay: as an expert writes it (expert_model.h)
///     f32            of the same, trained in bf16 (ops/precision.h): ours in f32
///
/// A length at which the baseline does not fit into memory gives a row with a note.
std::vector<BenchRow> run_train_cases(const TrainPlan& plan);

}  // namespace lagwise::bench
