#pragma once

#include <utility>

#include "lagwise/encodings/encoding.h"

namespace lagwise {

/// One table for the rows of queries and one for those of keys, often the same tensor.
struct RowTables : Prepared {
  RowTables(at::Tensor queries, at::Tensor keys)
      : queries(std::move(queries)), keys(std::move(keys)) {}

  int64_t bytes() const override {
    return bytes_of(queries) + (keys.is_same(queries) ? 0 : bytes_of(keys));
  }

  at::Tensor queries, keys;
};

}  // namespace lagwise
