#pragma once

#include <cstdint>

namespace lagwise {

/// The heads that an encoding or an attention is made for.
struct HeadShape {
  int64_t heads = 1;
  int64_t dim = 1;        ///< D, of queries and keys
  int64_t model_dim = 0;  ///< C, of the input; 0: heads * dim
  int64_t value_dim = 0;  ///< E, of values; 0: dim
  uint64_t seed = 0;      ///< of initial parameters

  int64_t model_width() const { return model_dim > 0 ? model_dim : heads * dim; }
  int64_t value_width() const { return value_dim > 0 ? value_dim : dim; }
};

}  // namespace lagwise
