#include "lagwise/models/layer_encodings.h"

#include <algorithm>

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

}  // namespace lagwise
