#pragma once

#include <functional>
#include <string>

#include "lagwise/ops/encoded.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

class Model;

/// How well a masked model knows whole windows of a text:
///
///     loss        = - 1/n sum_i ln p(x_i | all other tokens of its window)
///     perplexity  = exp(loss)
///
/// over the n tokens of all windows, each hidden in turn, alone (Salazar et al., 2020,
/// arXiv:1910.14659). It is no probability of the text, for each token sees those after
/// it; so it compares masked models with each other, never with decoders.
struct PseudoPerplexity {
  std::string split;
  int64_t windows = 0, length = 0;  ///< of a window, in tokens
  int64_t tokens = 0, right = 0;    ///< all; guessed right
  double loss = 0, error = 0;       ///< and half of its 95 % confidence interval
  double perplexity = 0;
};

/// Of `windows` of the training length that lie evenly over a split, or as many as it
/// has; a window of N tokens costs N passes over it, `batch` of them at a time.
/// std::invalid_argument where the model does not fill in, or there is no window.
PseudoPerplexity pseudo_perplexity(Model& model, const Task& task, const Draw& draw,
                                   const std::string& split, int64_t windows,
                                   const std::function<void(double)>& progress = {},
                                   int64_t batch = 32);

}  // namespace lagwise
