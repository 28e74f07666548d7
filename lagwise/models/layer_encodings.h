#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lagwise/encodings/encoding.h"
#include "lagwise/models/model_config.h"

namespace lagwise {

/// The positional encodings of a stack: one for all layers, or several. Layers with the
/// same text (and features of the same width) share one encoding, so that it prepares
/// its tables or noise once for all of them.
class LayerEncodings {
 public:
  /// One text of an encoding and of the attention it is joined with for each layer, in
  /// heads of that shape.
  LayerEncodings(const std::vector<std::string>& encodings,
                 const std::vector<std::string>& attentions, const HeadShape& shape);

  /// Those that differ, in the order of the layers that first need them.
  const std::vector<std::shared_ptr<Encoding>>& all() const { return all_; }

  /// Which of them a layer has.
  size_t which(size_t layer) const { return which_[layer]; }
  const std::shared_ptr<Encoding>& of(size_t layer) const { return all_[which(layer)]; }

  /// What the names of parameters begin with that layers share in one of them: "pos."
  /// of the first, "pos.1." of the second.
  static std::string prefix(size_t which) {
    return which == 0 ? "pos." : "pos." + std::to_string(which) + ".";
  }

  /// The input with positions in it, of every encoding that puts some there. [B, N, C]
  at::Tensor embed(at::Tensor x, const Placement& at) const;

  /// The most axes of a grid that all of them take.
  int64_t dims() const;

  /// That of the config where they see its axes; empty where they see a line of cells.
  /// std::invalid_argument where config.geometry asks for what cannot be.
  std::vector<int64_t> seen_grid(const ModelConfig& config) const;

 private:
  std::vector<std::shared_ptr<Encoding>> all_;
  std::vector<size_t> which_;  // by layer
};

}  // namespace lagwise
