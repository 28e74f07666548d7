#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/ops/encoded.h"

namespace lagwise {

/// Where `rows` queries or keys stand, as double [B|1, rows, A]: A = 1 on a line, the
/// axes of the grid otherwise. Angles are formed from these, so they hold at 10^7.
///
/// Row i has the number r = start + i. The first off_grid rows have no place: their
/// coordinates are 0, which every rotation and permutation leaves un-encoded. The
/// others stand at r - off_grid on a line, and in that cell of the grid, counted row by
/// row. Positions that are given (query_at, key_at) are taken as they are instead.
at::Tensor query_coordinates(const Placement& at, int64_t rows);
at::Tensor key_coordinates(const Placement& at, int64_t rows);

/// How many leading queries have no place.
int64_t unplaced_queries(const Placement& at, int64_t rows);

/// Whether queries and keys stand at the same places, so that one table serves both.
bool same_places(const Placement& at, int64_t queries, int64_t keys);

/// Refuses a grid of more axes than `dims`, naming the encoding.
void check_grid(const Placement& at, int64_t dims, const std::string& encoding);

}  // namespace lagwise
