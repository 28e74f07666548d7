#include "lagwise/models/layer_encodings.h"

#include <algorithm>
#include <stdexcept>

#include "lagwise/nn/mixer.h"

namespace lagwise {

LayerEncodings::LayerEncodings(const std::vector<std::string>& encodings,
                               const std::vector<std::string>& attentions,
                               const HeadShape& shape) {
  std::vector<std::string> texts;  // of all_
  for (size_t layer = 0; layer < encodings.size(); ++layer) {
    auto made = nn::make_encoding_for(attentions[layer], encodings[layer], shape);
    size_t same = 0;
    while (same < all_.size() && (texts[same] != encodings[layer] ||
                                  all_[same]->shape().dim != made->shape().dim))
      ++same;
    if (same == all_.size())
      all_.push_back(std::move(made)), texts.push_back(encodings[layer]);
    which_.push_back(same);
  }
}

at::Tensor LayerEncodings::embed(at::Tensor x, const Placement& at) const {
  for (const auto& encoding : all_) x = encoding->embed(x, at);
  return x;
}

int64_t LayerEncodings::dims() const {
  int64_t dims = all_.front()->traits().dims;
  for (const auto& encoding : all_) dims = std::min(dims, encoding->traits().dims);
  return dims;
}

std::vector<int64_t> LayerEncodings::seen_grid(const ModelConfig& config) const {
  const bool asked = config.geometry == "grid";
  if (asked && config.grid.size() < 2)
    throw std::invalid_argument(
        "model.grid: expected auto or line, got grid: the data of this task has none");
  if (config.grid.size() < 2 || config.geometry == "line") return {};
  if (std::ssize(config.grid) <= dims()) return config.grid;
  if (asked)
    throw std::invalid_argument(
        "model.grid: expected an encoding of " + std::to_string(config.grid.size()) +
        " axes where it is grid, got '" + config.encoding + "', which takes " +
        std::to_string(dims()) + "; with line every encoding sees the cells in a line");
  return {};
}

}  // namespace lagwise
