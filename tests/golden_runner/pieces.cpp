#include "tests/golden_runner/pieces.h"

#include <ATen/ATen.h>

#include <array>
#include <charconv>

namespace lagwise::golden {
namespace {

template <class Rows>
void require(const Rows& rows, const char* kind, const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  for (const auto& row : rows)
    if (row.name == name) return;
  throw Unavailable(std::string(kind) + " '" + name + "'");
}

}  // namespace

std::unique_ptr<Encoding> encoding(const std::string& text, const HeadShape& shape) {
  require(encodings(), "encoding", text);
  return make_encoding(text, shape);
}

std::unique_ptr<FeatureMap> feature_map(const std::string& text) {
  require(feature_maps(), "feature map", text);
  return make_feature_map(text);
}

at::Tensor parameter(const Parameters& parameters, std::string_view name) {
  std::string others;
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
    others += " " + key;
  }
  throw std::invalid_argument("no parameter '" + std::string(name) +
                              "'; there are:" + others);
}

std::string exactly(double x) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), x).ptr};
}

at::Tensor batched(const at::Tensor& x) { return x.dim() == 3 ? x.unsqueeze(0) : x; }

at::Tensor by_pair(const at::Tensor& by_lag, int64_t queries, int64_t keys) {
  const at::Tensor column =
      at::arange(queries).unsqueeze(1) - at::arange(keys) + keys - 1;
  std::vector<int64_t> shape = by_lag.sizes().vec();
  shape[1] = keys;
  shape.insert(shape.begin() + 1, queries);
  return by_lag.index_select(1, column.flatten()).reshape(shape);
}

at::Tensor lag_key_scores(const Encoded& encoded) {
  const at::Tensor rows =
      by_pair(encoded.lag_keys, encoded.q.size(2), encoded.k.size(2));
  return (encoded.q.unsqueeze(3) * rows).sum(-1);
}

at::Tensor scores(const Encoded& encoded) {
  const int64_t n = encoded.q.size(2), m = encoded.k.size(2);
  at::Tensor sum = at::matmul(encoded.q, encoded.k.transpose(-1, -2));
  if (encoded.lag_keys.defined()) sum = sum + lag_key_scores(encoded);
  sum = sum * encoded.scale;
  if (encoded.lag_bias.defined()) sum = sum + by_pair(encoded.lag_bias, n, m);
  return sum;
}

at::Tensor visible_only(const at::Tensor& pairs, int64_t offset) {
  return pairs.tril(offset);
}

}  // namespace lagwise::golden
