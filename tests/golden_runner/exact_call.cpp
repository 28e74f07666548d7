#include "tests/golden_runner/exact_call.h"

#include "lagwise/ops/exact_attention.h"

namespace lagwise::golden {

at::Tensor attend_exactly(const Encoded& encoded, const at::Tensor& v,
                          const Placement& at) {
  ops::ExactOptions options;
  options.causal = at.causal;
  options.scale = encoded.scale;
  options.lag_bias = encoded.lag_bias;
  options.lag_keys = encoded.lag_keys;
  options.lag_values = encoded.lag_values;
  options.query_start = at.query_start;
  options.key_start = at.key_start;
  return ops::exact_attention(encoded.q, encoded.k, v, options);
}

}  // namespace lagwise::golden
