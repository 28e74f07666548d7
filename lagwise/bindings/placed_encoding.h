#pragma once

#include <memory>
#include <string>

#include "lagwise/bindings/part.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/nn/pass.h"

namespace lagwise::bindings {

/// An encoding in one layer of a model, as a config describes it:
///
///     encoding        its text, as in recipes
///     attention       the text of the attention it is joined with; empty: none
///     heads, dim      of queries and keys
///     value_dim, model_dim, seed, layer, layers, causal, horizon, grid
struct PlacedEncoding {
  explicit PlacedEncoding(const Json& config);

  /// What the layers share, then what this one has for itself. The names begin with
  /// `prefix`.
  Parameters parameters(const std::string& prefix) const;

  /// Where n queries and m keys stand, with the code of those positions.
  nn::Pass pass(const Inputs& inputs, int64_t n, int64_t m) const;

  Json facts() const;

  HeadShape shape;
  std::string text, attention;
  bool causal;
  int64_t horizon;
  std::vector<int64_t> grid;
  std::shared_ptr<Encoding> encoding;
  Layer layer;
};

}  // namespace lagwise::bindings
