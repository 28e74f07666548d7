#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>

#include "lagwise/attention/feature_map.h"
#include "lagwise/encodings/encoding.h"
#include "tests/golden_runner/golden_run.h"

/// The pieces of the library as handlers use them, by name. One that is not
/// registered is Unavailable; a wrong option of one that is, is a mistake.
namespace lagwise::golden {

std::unique_ptr<Encoding> encoding(const std::string& text, const HeadShape& shape);
std::unique_ptr<FeatureMap> feature_map(const std::string& text);

/// The parameter of that name; std::invalid_argument lists the others.
at::Tensor parameter(const Parameters& parameters, std::string_view name);

/// The shortest text that reads back as the same number.
std::string exactly(double x);

/// [H, N, D] as [1, H, N, D].
at::Tensor batched(const at::Tensor& x);

/// A table by lag [H, N+M-1, ..] as one entry per pair [H, N, M, ..].
at::Tensor by_pair(const at::Tensor& by_lag, int64_t queries, int64_t keys);

/// q_i . lag_keys(i - j), [B, H, N, M], before any scale.
at::Tensor lag_key_scores(const Encoded& encoded);

/// What exact attention takes the softmax of, by definition and before any mask:
/// scale (q.k + q.lag_keys) + lag_bias, [B, H, N, M].
at::Tensor scores(const Encoded& encoded);

/// Keeps row i, column j where key j is not ahead of query i + `offset`; else 0.
at::Tensor visible_only(const at::Tensor& pairs, int64_t offset = 0);

}  // namespace lagwise::golden
