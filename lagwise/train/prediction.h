#pragma once

#include <vector>

#include "lagwise/train/run.h"

namespace lagwise {

/// What a trained classifier makes of something.
struct Prediction {
  std::string name;                   ///< of what was classified
  std::vector<double> probabilities;  ///< of each class
  size_t best() const;                ///< the most likely class
};

/// Classifies, `batch` at a time; what is longer than the training length is cut, as in
/// training. std::invalid_argument for something empty.
std::vector<Prediction> predict(const Run& run, const std::vector<Unlabelled>& all,
                                size_t batch = 32);

/// The name of a class: what the data called it, else its number.
std::string class_name(const Run& run, size_t index);

}  // namespace lagwise
