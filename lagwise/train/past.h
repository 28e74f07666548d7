#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lagwise/models/model.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// Training with a past (docs/memory.md). A window that is always trained from an empty
/// state never shows the model the states it meets later. So before a training window
/// of L tokens the model reads the m L tokens before it, with its present weights and
/// without a gradient, and is trained on the window from the state that leaves it in.
///
/// `train.past` lists the m to draw from, "0,0,1,3": half of the micro-steps begin with
/// an empty state. Nothing is carried from step to step, so a step stays a function of
/// the parameters and its number.
class PastMultiples {
 public:
  /// std::invalid_argument says what is legal.
  explicit PastMultiples(const std::string& text);

  int64_t most() const;                      ///< of the multiples
  bool any() const { return most() > 0; }    ///< else all windows begin empty
  int64_t multiple(const Draw& draw) const;  ///< m of one micro-step, a function of it

 private:
  std::vector<int64_t> multiples_;
};

/// The state of the model after tokens [B, N], which it reads `chunk` at a time without
/// a gradient and without dropout: what that takes does not grow with N.
std::unique_ptr<DecodingState> read_past(Model& model, const at::Tensor& tokens,
                                         int64_t chunk, const Draw& draw);

/// The loss of the last `length` targets of each row of a batch, whose tokens before are
/// read as the past. Gradients reach the parameters through the window alone.
Loss loss_after_past(Model& model, const Batch& batch, int64_t length,
                     const Draw& draw);

/// std::invalid_argument, in one line, if a model cannot be trained on windows of
/// `length` tokens that come after so many times as many: it keeps no state, its state
/// grows with what it reads, or its encoding ends before.
void check_past(Model& model, const Task& task, const PastMultiples& past,
                int64_t length, const Draw& draw);

}  // namespace lagwise
