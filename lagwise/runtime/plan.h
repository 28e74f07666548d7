#pragma once

#include <cstdint>
#include <string>

#include "lagwise/core/one_token.h"
#include "lagwise/kernels/few_rows.h"

namespace lagwise::runtime {

/// What a decoder computes, without its matrices:
///
///     x = sqrt(C) embed[token] + inputs
///     x = x + attention(norm(x)),  x = x + feed_forward(norm(x))     each layer
///     logits = head(norm(x))
///
/// with the norm behind the sum where it is not `pre_norm`.
struct Plan {
  int64_t vocabulary = 0, dim = 0, heads = 0, key_dim = 0, value_dim = 0;
  int64_t feed_forward = 0;
  std::string norm = "rms";  ///< or "layer"
  double norm_eps = 1e-5;
  bool pre_norm = true;
  bool tied = true;  ///< the head is the embedding, without a bias
  kernels::WeightType weights = kernels::WeightType::f32;
  OneTokenModel one;

  int64_t query_columns() const { return heads * key_dim; }
  int64_t value_columns() const { return heads * value_dim; }
  /// q, k and v of all heads side by side.
  int64_t mixed_columns() const { return 2 * query_columns() + value_columns(); }
};

/// The widths of the rows of one layer on their way into the state.
struct LayerWidths {
  int64_t mapped;    ///< what the feature map takes
  int64_t features;  ///< what it gives
  int64_t state;     ///< rows of S [state, E]
  int64_t norm;      ///< length of z; 0: nothing is divided
  int64_t widest;    ///< the most of any row on the way
};
LayerWidths widths_of(const Plan& plan, const OneTokenLayer& layer);

/// The most positions it holds: tables and horizons end. Else a number that no text
/// reaches.
int64_t most_positions(const Plan& plan);

const char* name_of(kernels::WeightType type);
/// std::invalid_argument lists the names.
kernels::WeightType weight_type(const std::string& name);

/// The settings of a plan as JSON, and back; numbers (core/numbers.h) are not among
/// them. DataError names `file` and what was expected.
std::string plan_text(const Plan& plan);
Plan read_plan(const std::string& file, const std::string& text);

/// Checks that all numbers are there and fit: after this, nothing in a pass is checked.
/// DataError names `file` and what was expected.
void check_plan(const std::string& file, const Plan& plan);

}  // namespace lagwise::runtime
