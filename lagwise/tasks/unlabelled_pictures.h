#pragma once

#include <cmath>

#include "lagwise/data/sources/picture_folder.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// A picture, to be classified by a model of images. How its pixels are arranged is
/// known from the model: a row has patch^2 numbers in grey, 3 patch^2 in colour, and no
/// number is both.
inline std::vector<Unlabelled> unlabelled_pictures(const std::string& name,
                                                   data::Bytes bytes,
                                                   const ModelConfig& model, Spec&) {
  const auto root = [](int64_t square) {
    return std::llround(std::sqrt(static_cast<double>(square)));
  };
  const bool colour = root(model.patch) * root(model.patch) != model.patch;
  const int64_t patch = root(colour ? model.patch / 3 : model.patch);
  const auto numbers =
      data::picture_numbers(name, bytes, model.grid.at(0) * patch, patch, colour);
  return {{name, {numbers.begin(), numbers.end()}}};
}

}  // namespace lagwise
