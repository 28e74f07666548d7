#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/comparison.h"

namespace lagwise::bench {

struct GeneratePlan {
  int threads = 2;
  std::vector<int64_t> contexts = {128, 512, 2048, 8192};
  bool quick = false;  ///< a small model, short contexts, fewer repetitions
  std::string only;    ///< of these groups: linear, exact, recompute, constant; empty:
                       ///<   all
  double longest_ms = 12000;  ///< of a call that is made rather than estimated
  int64_t most_bytes = 0;     ///< of memory it may take; 0: half of what is free
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<void(const BenchRow&)> on_row = [](const BenchRow&) {};
};

/// One token more after a context of N tokens, by a decoder_lm of 4 layers, C = 512,
/// H = 8, feed-forward 2048, bytes. Ours is linear attention with SineSPE as in the
/// paper, whose state does not grow. What the baselines are, by groups:
///
///     linear      linear rope, linear conv_spe: linear attention, another encoding
///     exact       exact rope: exact attention that keeps all keys and values;
///                 exact huang: the same with a table by lag, as in Music Transformer
///     recompute   ours without a state, in plain torch (plain_model.h): the whole
///                 context again for every token, as the paper's code writes music
///     constant    at 100: ours itself after 100 tokens, of which ours has read 20,000
///
/// Contexts are measured in growing order: a model reads on from one to the next. While
/// one side is timed its context grows by the tokens of the measurement, a hundred or
/// so. A context that is too long to compute again, by time or memory, is estimated
/// from a shorter one, in proportion to its length; the row has a note that says so.
///
/// Each row is handed to `on_row` as soon as it is measured. gflops counts the dense
/// layers and the state, 2 flops a multiply-add.
std::vector<BenchRow> run_generate_cases(const GeneratePlan& plan);

}  // namespace lagwise::bench
