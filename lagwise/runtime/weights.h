#pragma once

#include <map>
#include <string>
#include <vector>

#include "lagwise/data/formats/safetensors.h"
#include "lagwise/kernels/few_rows.h"
#include "lagwise/runtime/plan.h"

namespace lagwise::runtime {

/// y = W x + b: panels of W (kernels/few_rows.h), and as many numbers of b as the panels
/// have outputs, or none.
struct Dense {
  kernels::PanelWeights w;
  const float* bias = nullptr;
};

/// gain, and bias where the mean is taken out.
struct NormWeights {
  const float *gain = nullptr, *bias = nullptr;
};

/// The trained numbers of one layer.
struct LayerWeights {
  NormWeights attention_norm, feed_norm;
  Dense mixed;  ///< to q, k and v of all heads, then the gate of the output
  Dense gates;  ///< to the forget and the write gate of each head; always f32
  const float* forget_rate = nullptr;  ///< [H]: e^rho
  const float* taps = nullptr;         ///< [K, mixed_columns]
  Dense out, feed_in, feed_out;
};

struct ModelWeights {
  Dense embed, head;
  NormWeights norm;
  std::vector<LayerWeights> layers;
};

/// Finds what a plan needs among the tensors of a file, which must outlive the result,
/// and fills in the numbers of the plan. DataError where one is missing or has another
/// shape: after this every pointer leads into the file.
ModelWeights read_weights(const std::string& file, const data::Safetensors& tensors,
                          Plan& plan);

}  // namespace lagwise::runtime
