#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/comparison.h"
#include "lagwise/models/model.h"

namespace lagwise::bench {

struct GeneratePlan {
  int threads = 2;
  std::vector<int64_t> contexts = {128, 512, 2048, 8192};
  bool quick = false;  ///< a small model, short contexts, fewer repetitions
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// One token more after a context of N tokens, by a decoder_lm of 4 layers, C = 512,
/// H = 8, feed-forward 2048, bytes. Ours is linear attention with SineSPE as in the
/// paper, whose state does not grow. What the baselines are:
///
///     linear rope   linear attention with another encoding
///     exact rope    exact attention that keeps all keys and values
///     exact huang   the same with a table by lag, as in Music Transformer
///     recompute     ours without a state, in plain torch (plain_model.h): the whole
///                   context again for every token, as the paper's code writes music
///
/// While one side is timed its context grows by the tokens of the measurement, some
/// tens. gflops counts the dense layers and the state, 2 flops a multiply-add.
std::vector<BenchRow> run_generate_cases(const GeneratePlan& plan);

}  // namespace lagwise::bench
