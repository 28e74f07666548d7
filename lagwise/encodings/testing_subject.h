#pragma once

// Support for contract_test.cpp: one encoding and the smallest model around it.

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "lagwise/encodings/encoding.h"
#include "lagwise/encodings/kernel_by_lag.h"
#include "lagwise/encodings/testing_lag_weights.h"
#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/linear_attention.h"

namespace lagwise::testing {

inline at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  at::manual_seed(seed);
  return at::randn(sizes, at::kDouble);
}

/// The state of a stream: that of linear attention and the code of the rows before; or,
/// of attention by lag, features and values of all rows so far.
struct Stream {
  ops::LinearState state = {};
  std::shared_ptr<Code> code = {};
  at::Tensor k = {}, v = {};
};

/// An encoding with parameters of layer 1 of 3, and attention without weights: queries
/// are the heads of the embedded input, keys the same in another order of channels,
/// values the heads of the input.
class Subject {
 public:
  explicit Subject(const std::string& text, HeadShape shape = {.heads = 4, .dim = 8})
      : encoding_(make_encoding(text, shape)), layer_{1, 3, encoding_->layer(1, 3)} {}

  Encoding& encoding() { return *encoding_; }
  const Traits& traits() const { return encoding_->traits(); }
  const Layer& layer() const { return layer_; }
  Draw draw = {.seed = 1};
  int64_t horizon = 0;  ///< of every placement

  /// All parameters, as double and wanting gradients.
  Parameters parameters(at::ScalarType type = at::kDouble) {
    Parameters all = encoding_->shared();
    all.insert(all.end(), layer_.own.begin(), layer_.own.end());
    for (auto& [name, x] : all) {
      x.set_data(x.to(type));
      x.set_requires_grad(true);
    }
    return all;
  }

  at::Tensor input(int64_t batch, int64_t n, uint64_t seed = 1) const {
    return normal({batch, n, encoding_->shape().heads * encoding_->shape().dim}, seed);
  }

  Placement at(int64_t start, bool causal = true) const {
    Placement at{.query_start = start, .key_start = start};
    at.causal = causal;
    at.horizon = horizon;
    return at;
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Placement& at) {
    return encode_once(*encoding_, q, k, at, draw, &layer_);
  }

  /// Scores of embedded inputs, as exact attention forms them. [B, H, N, M]
  at::Tensor scores(const at::Tensor& xq, const at::Tensor& xk, const Placement& at) {
    Placement of_keys = at;
    of_keys.query_start = at.key_start;
    const at::Tensor q = heads(encoding_->embed(xq, at));
    const at::Tensor k = keys(encoding_->embed(xk, of_keys));
    return pair_scores(encode(q, k, at), at.query_start - at.key_start);
  }

  /// The rows x of a stream through linear attention, as its traits say it is used.
  at::Tensor attend(const at::Tensor& x, const Placement& at,
                    Stream* stream = nullptr) {
    const at::Tensor e = encoding_->embed(x, at);
    at::Tensor q = heads(e), k = keys(e);
    ops::LinearOptions options;
    options.causal = at.causal;
    const bool after = traits().stage == Traits::Stage::after_map;
    if (after) q = elu1(q), k = elu1(k);
    const int64_t n = x.size(1);
    const Code* before = stream != nullptr ? stream->code.get() : nullptr;
    const auto code = std::make_shared<Code>(encoding_->code(at, draw, n, n, before));
    const Encoded encoded = encoding_->encode(q, k, *code, layer_, at);
    options.feature_map = after ? "none" : "elu1";
    if (traits().denominator == Traits::Denominator::separate) {
      options.denominator = "separate";
      options.q_norm = q, options.k_norm = k;
    }
    if (at.causal) options.decay = encoded.decay;
    if (traits().by_lag && !(at.causal && traits().decays))
      return weigh(encoded, heads(x), at, stream);
    const auto result = ops::linear_attention_stateful(
        encoded.q, encoded.k, heads(x), stream ? stream->state : ops::LinearState(),
        options);
    if (stream != nullptr) *stream = {result.state, code};
    return result.out;
  }

  /// Linear attention with a factor for every lag, over the rows of a stream so far.
  at::Tensor weigh(const Encoded& e, const at::Tensor& v, const Placement& at,
                   Stream* stream) {
    if (stream == nullptr)
      return weigh_lags(elu1(e.q), elu1(e.k), v, e.lag_bias, at.causal);
    const auto grow = [](at::Tensor& past, const at::Tensor& rows) {
      past = past.defined() ? at::cat({past, rows}, 2) : rows;
    };
    grow(stream->k, elu1(e.k)), grow(stream->v, v);
    Placement all = at;
    all.key_start = at.query_start + v.size(2) - stream->v.size(2);
    const at::Tensor bias = encode(e.q, stream->k, all).lag_bias;
    return weigh_lags(elu1(e.q), stream->k, stream->v, bias, at.causal);
  }

  /// Exact attention.
  at::Tensor attend_exactly(const at::Tensor& x, const Placement& at) {
    const at::Tensor e = encoding_->embed(x, at);
    const Encoded encoded = encode(heads(e), keys(e), at);
    ops::ExactOptions options;
    options.causal = at.causal;
    options.scale = encoded.scale;
    options.lag_bias = encoded.lag_bias;
    options.lag_keys = encoded.lag_keys, options.lag_values = encoded.lag_values;
    options.query_start = at.query_start, options.key_start = at.key_start;
    return ops::exact_attention(encoded.q, encoded.k, heads(x), options);
  }

  bool serves_linear(bool causal) const {
    return causal ? traits().linear_causal : traits().linear_full;
  }
  at::Tensor attend_somehow(const at::Tensor& x, const Placement& at) {
    return serves_linear(at.causal) ? attend(x, at) : attend_exactly(x, at);
  }

  at::Tensor heads(const at::Tensor& x) const {  // [B, N, H D] -> [B, H, N, D]
    return x
        .reshape(
            {x.size(0), x.size(1), encoding_->shape().heads, encoding_->shape().dim})
        .transpose(1, 2);
  }
  at::Tensor keys(const at::Tensor& x) const { return heads(x.flip({2})); }

 private:
  std::unique_ptr<Encoding> encoding_;
  Layer layer_;
};

}  // namespace lagwise::testing
