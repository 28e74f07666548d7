#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// How the numbers of a matrix are stored. int8 has a scale for every output and
/// kScaledColumns columns.
enum class WeightType { f32, bf16, int8 };

inline constexpr int64_t kPanelOutputs = 16, kScaledColumns = 64;

/// The matrix W [outputs, cols] of a dense layer, sixteen outputs side by side, so that
/// a vector of weights meets one number of the input:
///
///     numbers[((o / 16) cols + c) 16 + o mod 16] = W(o, c)
///     scales[((o / 16) blocks + c / 64) 16 + o mod 16],  blocks = ceil(cols / 64)
///
/// Outputs past the last are zeros. The layout is the same for every instruction set.
struct PanelWeights {
  WeightType type = WeightType::f32;
  int64_t outputs = 0, cols = 0;
  const void* numbers = nullptr;
  const float* scales = nullptr;  ///< int8 only

  int64_t panels() const { return (outputs + kPanelOutputs - 1) / kPanelOutputs; }
  int64_t blocks() const { return (cols + kScaledColumns - 1) / kScaledColumns; }
};

/// What the product is added to.
struct FewRowsStart {
  const float* bias = nullptr;  ///< [16 panels()], of every row; null: 0
  bool add = false;             ///< y itself, too: y += W x + b
};

/// y_i = W x_i + b for a few rows: the step of a decoder, which reads every weight once.
///
/// Shapes    x [N, cols]; y [N, 16 panels()], of which the columns of the panels
///           [first_panel, end_panel) are written, those past `outputs` too.
/// Requires  columns side by side in x and y (col_step 1).
/// Cost      2 N outputs cols flops. One row goes at the speed of memory: four panels at
///           a time; more rows share a pass over the weights.
/// Threads   none. Panels may be split between callers.
/// Numerics  each output is a sum over blocks of 64 columns, each summed in order: it has
///           the same bits whatever rows and panels are computed beside it.
void few_rows(const PanelWeights& w, int64_t first_panel, int64_t end_panel,
              MatView<const float> x, MatView<float> y,
              const FewRowsStart& start = {}) noexcept;

/// One row of W, to[c] = W(output, c): the vector of a token whose embedding is W.
void unpack_row(const PanelWeights& w, int64_t output, float* to) noexcept;

}  // namespace lagwise::kernels
