#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise {

/// The shape of a model, as a recipe gives it. Everything needed to build it again.
struct ModelConfig {
  std::string model = "decoder_lm";  ///< a row of the table of models
  int64_t vocabulary = 256;
  int64_t classes = 0;  ///< of a classifier
  int64_t layers = 2;
  int64_t dim = 64;  ///< C
  int64_t heads = 4;
  int64_t key_dim = 0;       ///< D of a head's queries and keys; 0: C / heads
  int64_t value_dim = 0;     ///< E of a head's values; 0: C / heads
  int64_t feed_forward = 0;  ///< width; 0: 4 C
  double dropout = 0.0;
  std::string norm = "rms";  ///< rms, layer
  bool pre_norm = true;
  bool tied = true;               ///< output and input embedding are one matrix
  std::string pooling = "mean";   ///< of a classifier: mean, cls
  std::string encoding = "none";  ///< of all layers, or one of each:
  std::string attention = "linear:map=elu1";  ///<   core/layer_texts.h
  std::string cross_encoding = "none";        ///< of an encoder_decoder
  std::string cross_attention = "exact";
  int64_t length = 512;  ///< trained on; the horizon of encodings that need one
  std::vector<int64_t> grid = {};  ///< of images: {32, 32}
  std::string geometry =
      "auto";  ///< of a grid: `grid` shows encodings its axes, `line`
               ///<   its cells one after another, `auto` the first
               ///<   where they take it, else the second
  int64_t patch =
      1;  ///< above 1: tokens are numbers (pixels), and each `patch` of them
          ///<   become one row of the model by a linear map
  uint64_t seed = 0;  ///< of the initial parameters

  int64_t key_width() const { return key_dim > 0 ? key_dim : dim / heads; }
  int64_t value_width() const { return value_dim > 0 ? value_dim : dim / heads; }
};

}  // namespace lagwise
