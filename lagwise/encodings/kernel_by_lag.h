#pragma once

#include <ATen/core/Tensor.h>

#include "lagwise/encodings/encoding.h"

namespace lagwise {

/// What attention makes of encoded queries and keys before any normalisation, formed
/// pair by pair, [B, H, N, M]:
///
///     scale (q'_i . k'_j + q'_i . lag_keys) + lag_bias       exact attention
///     sum_d q'_id k'_jd g_d^(i-j)                            with a decay, j <= i
///
/// Quadratic, for tests and pictures; `start` is the lag of row 0 and key 0.
at::Tensor pair_scores(const Encoded& encoded, int64_t start = 0);

/// The kernel an encoding puts on lags 0..lags-1, [H, lags] in double: the scores of
/// queries and keys that are all one vector of entries +-1 / sqrt(D), times sqrt(D), so
/// that without positions it is 1. (The signs are random, but always the same: a vector
/// of equal entries would not notice a permutation.) For encodings of the input, times
/// the product of what they add at the position of the lag and at 0, over its value at
/// 0. One that has both a decay and a bias of the score, the same for linear and for
/// exact attention, shows its decay.
/// It is column 0 of the next.
at::Tensor kernel_by_lag(Encoding& encoding, int64_t lags, const Draw& draw,
                         const Layer& layer, int64_t horizon = 0);

/// The same for every pair of a query and a key, [H, queries, keys]: what a stochastic
/// or an absolute encoding makes of it is no function of the lag (core/map_by_lag.h).
at::Tensor kernel_by_pair(Encoding& encoding, int64_t queries, int64_t keys,
                          const Draw& draw, const Layer& layer, int64_t horizon = 0);

}  // namespace lagwise
