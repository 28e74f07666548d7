#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise {

/// Which entries of a causal map [query, key] count: keys j <= query i.
struct MapRegion {
  int64_t first = 0;      ///< queries [first, last)
  int64_t last = -1;      ///< -1: all
  int64_t farthest = -1;  ///< the largest lag i - j; -1: any
};

/// How far a map is from a function of the lag alone: the variance left within lags
/// as a share of the whole,
///
///     sum_l n_l var(a(i, j) : i - j = l) / (n var(a))
///
/// 0 for a Toeplitz map, near 1 for one in which the lag explains nothing; 0 where
/// there is no variance at all.
double variance_within_lags(MatView<const double> map, const MapRegion& region = {});

/// How far a map is from growing towards the query: of all pairs of keys j < k of one
/// row, the part with a(i, j) > a(i, k). 0 where no row has two keys.
double inversions(MatView<const double> map, const MapRegion& region = {});

/// Paper  both: Liutkus et al., "Relative Positional Encoding for Transformers with
///        Linear Complexity", 2021 (there "T-invariance" and "monotonicity").

}  // namespace lagwise
